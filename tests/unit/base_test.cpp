// Names and their parsers, units, settings, log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/units.hpp"
#include "treering/error.hpp"
#include "treering/types.hpp"

namespace treering {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The Error that `action` throws.
template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::stuck, "nothing was thrown"};
}

// ---- names ----

/// `others`: values after these that have a name, but cannot be asked for.
template <class T>
void expect_round_trip(int values, T (*parse)(std::string_view), int others = 0) {
  std::set<std::string> seen;
  for (int i = 0; i < values; ++i) {
    const T value = static_cast<T>(i);
    EXPECT_EQ(parse(name(value)), value) << name(value);
    EXPECT_TRUE(seen.insert(name(value)).second) << name(value);
  }
  for (int i = 0; i < others; ++i)
    EXPECT_THROW(parse(name(static_cast<T>(values + i))), Error)
        << name(static_cast<T>(values + i));
  EXPECT_STREQ(name(static_cast<T>(values + others)),
               "unknown");  // a value that another version sent
}

TEST(Names, ParseBack) {
  expect_round_trip(data_types, parse_data_type);
  expect_round_trip(reduce_ops, parse_reduce_op);
  expect_round_trip(collectives, parse_collective, 1);  // point_to_point
  expect_round_trip(algorithms, parse_algorithm);
  expect_round_trip(wire_types, parse_wire_type);
}

TEST(Names, AreTheDocumentedOnes) {
  EXPECT_STREQ(name(DataType::bf16), "bf16");
  EXPECT_STREQ(name(ReduceOp::prod), "prod");
  EXPECT_STREQ(name(Collective::all_to_all), "all_to_all");
  EXPECT_STREQ(name(Algorithm::one_shot), "one_shot");
  EXPECT_STREQ(name(ErrorCode::peer_lost), "peer_lost");
  EXPECT_STREQ(name(ErrorCode::stuck), "stuck");
}

TEST(Names, OfNcclTestsAreUnderstood) {
  const std::pair<const char*, DataType> types[] = {
      {"int8", DataType::i8},
      {"char", DataType::i8},
      {"uint8", DataType::u8},
      {"int32", DataType::i32},
      {"int", DataType::i32},
      {"uint32", DataType::u32},
      {"int64", DataType::i64},
      {"uint64", DataType::u64},
      {"half", DataType::f16},
      {"float16", DataType::f16},
      {"float", DataType::f32},
      {"double", DataType::f64},
      {"bfloat16", DataType::bf16},
      {"float32", DataType::f32},
      {"float64", DataType::f64},
      {"uint16", DataType::u16},
      {"short", DataType::i16},
      {"long", DataType::i64},
      {"bool", DataType::boolean},
      {"fp8_e4m3", DataType::f8e4m3},
      {"float8_e4m3fn", DataType::f8e4m3},
      {"float8_e5m2", DataType::f8e5m2},
  };
  for (const auto& [text, type] : types) EXPECT_EQ(parse_data_type(text), type) << text;
  EXPECT_EQ(parse_reduce_op("mulsum"), ReduceOp::premul_sum);
  for (const char* text : {"bit_and", "band", "and"})
    EXPECT_EQ(parse_reduce_op(text), ReduceOp::bit_and) << text;
  EXPECT_EQ(parse_collective("alltoall"), Collective::all_to_all);
  EXPECT_EQ(parse_collective("allreduce"), Collective::all_reduce);
}

TEST(Names, UnknownOnesAreRefusedWithTheValidOnes) {
  const Error type = error_of([] { parse_data_type("f17"); });
  EXPECT_EQ(type.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(type.what(),
              HasSubstr("There is no data type 'f17'. Valid: u8, i8, u16, i16, u32, i32, u64, i64, "
                        "bool, f8e4m3, f8e5m2, f16, bf16, f32, f64; also uint8, int8, char, "));
  EXPECT_STREQ(error_of([] { parse_reduce_op(""); }).what(),
               "There is no reduction ''. Valid: sum, prod, min, max, avg, premul_sum, bit_and, "
               "bit_or, bit_xor; also product, mulsum, band, and, bor, or, bxor, xor.");
  EXPECT_THAT(error_of([] { parse_collective("all_reduc"); }).what(), HasSubstr("all_reduce, "));
  EXPECT_THAT(error_of([] { parse_algorithm("Ring"); }).what(),
              HasSubstr("Valid: ring, tree, one_shot"));
}

TEST(Types, HaveTheirSizes) {
  const std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 1, 2, 2, 4, 8};
  for (int i = 0; i < data_types; ++i) EXPECT_EQ(size_of(static_cast<DataType>(i)), sizes[i]) << i;
}

TEST(Types, HaveTheirOperators) {
  for (const DataType type : {DataType::u8, DataType::i8, DataType::u16, DataType::i16,
                              DataType::u32, DataType::i32, DataType::u64, DataType::i64})
    EXPECT_EQ(operators_of(type), "sum, prod, min, max, avg, premul_sum, bit_and, bit_or, bit_xor");
  EXPECT_EQ(operators_of(DataType::boolean), "sum, prod, min, max, bit_and, bit_or, bit_xor");
  for (const DataType type : {DataType::f8e4m3, DataType::f8e5m2, DataType::f16, DataType::bf16,
                              DataType::f32, DataType::f64})
    EXPECT_EQ(operators_of(type), "sum, prod, min, max, avg, premul_sum");
}

// ---- units ----

TEST(Sizes, AreParsed) {
  const std::pair<const char*, std::size_t> sizes[] = {
      {"0", 0},
      {"1", 1},
      {"100 B", 100},
      {"64K", 65536},
      {"64k", 65536},
      {"64KB", 65536},
      {"64 KiB", 65536},
      {"1.5M", 1572864},
      {"2G", std::size_t{2} << 30},
      {"1T", std::size_t{1} << 40},
      {"0.3K", 307},
      {"18446744073709551615", std::numeric_limits<std::size_t>::max()},
      {"15.5E", std::size_t{31} << 59},
  };
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_size(text), bytes) << text;
}

TEST(Sizes, ThatMeanNothingAreRefused) {
  for (const char* text : {"",          " ",      "K",
                           "-1",        "+1",     "1.",
                           "1.K",       ".5M",    "1e3",
                           "1X",        "1 KiBs", "1KK",
                           "1iB",       "64 K B", "0x10",
                           "nan",       "1,5M",   "18446744073709551616",
                           "16777216T", "16E",    "15.99999999999999999999E"}) {
    const Error error = error_of([&] { parse_size(text); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text;
    EXPECT_THAT(error.what(), HasSubstr("'" + std::string(text) + "' is not a size")) << text;
  }
}

TEST(Sizes, AreFormatted) {
  const std::pair<std::size_t, const char*> sizes[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {65536, "64 KiB"},
      {1572864, "1.5 MiB"},
      {1000000, "976.56 KiB"},
      {1048575, "1 MiB"},
      {std::size_t{12} << 20, "12 MiB"},
      {std::size_t{3} << 40, "3 TiB"},
      {std::size_t{5000} << 40, "4.88 PiB"},
  };
  for (const auto& [bytes, text] : sizes) EXPECT_EQ(format_size(bytes), text);
}

TEST(Sizes, SurviveARoundTrip) {
  for (int shift = 0; shift < 64; ++shift)
    for (const std::size_t quarters : {4, 5, 6, 7}) {  // two decimals hold quarters
      const std::size_t bytes = (std::size_t{1} << shift) / 4 * quarters;
      EXPECT_EQ(parse_size(format_size(bytes)), bytes) << format_size(bytes);
    }
}

TEST(Times, AreFormatted) {
  const std::pair<double, const char*> times[] = {
      {0, "0 ns"},           {85e-9, "85 ns"},     {999e-9, "999 ns"},   {999.6e-9, "1.00 us"},
      {12.34e-6, "12.3 us"}, {123.4e-6, "123 us"}, {4.56e-3, "4.56 ms"}, {9.999e-3, "10.0 ms"},
      {0.9999, "1.00 s"},    {1.2, "1.20 s"},      {7200, "7200 s"},
  };
  for (const auto& [seconds, text] : times) EXPECT_EQ(format_time(seconds), text);
}

// ---- settings ----

TEST(Settings, HaveTheDocumentedDefaults) {
  const Settings settings = parse_settings({});
  EXPECT_EQ(settings.device, DeviceChoice::automatic);
  EXPECT_EQ(settings.algorithm, std::nullopt);
  EXPECT_EQ(settings.wire, std::nullopt);
  EXPECT_EQ(settings.blocks, 0);
  EXPECT_EQ(settings.slot, 0U);
  EXPECT_EQ(settings.inbox, std::size_t{12} << 20);
  EXPECT_EQ(settings.arena, std::size_t{64} << 30);
  EXPECT_EQ(settings.host_threads, 0);
  EXPECT_EQ(settings.start_timeout, std::chrono::seconds(120));
  EXPECT_EQ(settings.log, LogLevel::warn);
  EXPECT_EQ(settings.simt_seed, 1U);
  EXPECT_EQ(settings.simt_threads, 32);
  EXPECT_EQ(settings.simt_patience, std::chrono::milliseconds(2000));
}

TEST(Settings, AreReadFromTheirVariables) {
  const Settings settings = parse_settings({
      {"TREERING_DEVICE", "simt"},
      {"TREERING_ALGORITHM", "two_shot"},
      {"TREERING_WIRE", "ll"},
      {"TREERING_BLOCKS", "3"},
      {"TREERING_SLOT", "4K"},
      {"TREERING_INBOX", "1.5M"},
      {"TREERING_ARENA", "1T"},
      {"TREERING_HOST_THREADS", "7"},
      {"TREERING_START_TIMEOUT", "5"},
      {"TREERING_LOG", "debug"},
      {"TREERING_SIMT_SEED", "18446744073709551615"},
      {"TREERING_SIMT_THREADS", "64"},
      {"TREERING_SIMT_PATIENCE", "250"},
  });
  EXPECT_EQ(settings.device, DeviceChoice::simt);
  EXPECT_EQ(settings.algorithm, Algorithm::two_shot);
  EXPECT_EQ(settings.wire, WireType::ll);
  EXPECT_EQ(settings.blocks, 3);
  EXPECT_EQ(settings.slot, 4096U);
  EXPECT_EQ(settings.inbox, 1572864U);
  EXPECT_EQ(settings.arena, std::size_t{1} << 40);
  EXPECT_EQ(settings.host_threads, 7);
  EXPECT_EQ(settings.start_timeout, std::chrono::seconds(5));
  EXPECT_EQ(settings.log, LogLevel::debug);
  EXPECT_EQ(settings.simt_seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(settings.simt_threads, 64);
  EXPECT_EQ(settings.simt_patience, std::chrono::milliseconds(250));
}

TEST(Settings, TakeEveryNamedChoice) {
  EXPECT_EQ(parse_settings({{"TREERING_DEVICE", "auto"}}).device, DeviceChoice::automatic);
  EXPECT_EQ(parse_settings({{"TREERING_DEVICE", "cuda"}}).device, DeviceChoice::cuda);
  EXPECT_EQ(parse_settings({{"TREERING_DEVICE", "host"}}).device, DeviceChoice::host);
  EXPECT_EQ(parse_settings({{"TREERING_LOG", "error"}}).log, LogLevel::error);
  EXPECT_EQ(parse_settings({{"TREERING_LOG", "info"}}).log, LogLevel::info);
  EXPECT_EQ(parse_settings({{"TREERING_HOST_THREADS", "auto"}}).host_threads, 0);
  for (int i = 0; i < algorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_EQ(parse_settings({{"TREERING_ALGORITHM", name(algorithm)}}).algorithm, algorithm);
    EXPECT_THAT(settings_markdown(), HasSubstr(name(algorithm)));
  }
}

TEST(Settings, RefuseWhatTheyDoNotUnderstand) {
  const std::pair<const char*, std::vector<const char*>> bad[] = {
      {"TREERING_DEVICE", {"gpu", "HOST", "host "}},
      {"TREERING_ALGORITHM", {"star", "1"}},
      {"TREERING_WIRE", {"ll128", "1"}},
      {"TREERING_BLOCKS", {"-1", "513", "two", "1.5", "1 ", " 1"}},
      {"TREERING_SLOT", {"-1", "big"}},
      {"TREERING_INBOX", {"0", "1K", "12 MX"}},
      {"TREERING_ARENA", {"0", "1M"}},
      {"TREERING_HOST_THREADS", {"0", "1025", "all"}},
      {"TREERING_START_TIMEOUT", {"0", "1m", "86401"}},
      {"TREERING_LOG", {"verbose", "2"}},
      {"TREERING_SIMT_SEED", {"-1", "18446744073709551616", "0x1"}},
      {"TREERING_SIMT_THREADS", {"0", "1025"}},
      {"TREERING_SIMT_PATIENCE", {"0", "2s"}},
  };
  for (const auto& [variable, values] : bad)
    for (const std::string value : values) {
      const Error error = error_of([&] { parse_settings({{variable, value}}); });
      EXPECT_EQ(error.code(), ErrorCode::invalid_setting) << variable << "=" << value;
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(std::string(variable) + "=" + value), HasSubstr("Valid: ")));
    }
  EXPECT_STREQ(
      error_of([] {
        parse_settings({{"TREERING_DEVICE", "gpu"}});
      }).what(),
      "The environment variable TREERING_DEVICE=gpu is not understood. Valid: `auto`, `cuda`, "
      "`host`, `simt`.");
}

TEST(Settings, IgnoreEmptyValuesAndOtherPrograms) {
  const Settings settings =
      parse_settings({{"TREERING_BLOCKS", ""}, {"NCCL_ALGO", "ring"}, {"TREERING_NOTHING", "1"}});
  EXPECT_EQ(settings.blocks, 0);
  EXPECT_EQ(settings.algorithm, std::nullopt);
}

TEST(Settings, WarnOfUnknownVariables) {
  EXPECT_THAT(unknown_settings({{"TREERING_LOG", "what"}, {"PATH", "/bin"}, {"TREE", "oak"}}),
              IsEmpty());
  EXPECT_THAT(
      unknown_settings({{"TREERING_DEVICES", "host"}, {"TREERING_SIMT_SED", "2"}}),
      ElementsAre(
          AllOf(HasSubstr("TREERING_DEVICES;"), HasSubstr("names: TREERING_DEVICE, ")),
          AllOf(HasSubstr("TREERING_SIMT_SED;"), HasSubstr("names: TREERING_SIMT_SEED, "))));
}

TEST(Settings, AreDocumented) {
  std::ifstream file(TREERING_SOURCE_DIR "/docs/environment.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(page, HasSubstr(settings_markdown()))
      << "docs/environment.md must contain exactly this table:\n"
      << settings_markdown();
}

// ---- log ----

class Log : public testing::Test {
 protected:
  ~Log() override {
    set_log_level(LogLevel::warn);
    set_log_rank(-1);
  }
};

TEST_F(Log, PrintsTheRankAndHonoursTheLevel) {
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::info);
  log(LogLevel::info, "no rank yet: {}", 1);
  log(LogLevel::debug, "too much detail");
  set_log_rank(3);
  log(LogLevel::error, "{} {{braces}}", "plain");
  write_log(LogLevel::warn, "not a {} format");
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("] info: no rank yet: 1\n"));
  EXPECT_THAT(lines, HasSubstr("] rank 3 error: plain {braces}\n"));
  EXPECT_THAT(lines, HasSubstr("] rank 3 warning: not a {} format\n"));
  EXPECT_THAT(lines, Not(HasSubstr("detail")));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
}

TEST(SettingsDeathTest, TheProcessReadsItsEnvironmentOnceAndWarnsOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TREERING_BLOCKS", "none", 1);
        const bool refused = error_of([] { settings(); }).code() == ErrorCode::invalid_setting;
        setenv("TREERING_BLOCKS", "5", 1);
        setenv("TREERING_BLOKS", "6", 1);
        setenv("TREERING_LOG", "info", 1);
        const bool read = settings().blocks == 5 && log_enabled(LogLevel::info);
        setenv("TREERING_BLOCKS", "7", 1);
        const bool once = settings().blocks == 5;
        log(LogLevel::info, "the end");
        _exit(refused && read && once ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "^treering\\[[0-9]+\\] warning: .*TREERING_BLOKS.*TREERING_BLOCKS, [A-Z_]*\\.\n"
      "treering\\[[0-9]+\\] info: the end\n$");
}

}  // namespace
}  // namespace treering

// What the documentation says of the sources: links lead somewhere, quoted lines are the real ones, no kernel is
// missing.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"

namespace treering {
namespace {

namespace fs = std::filesystem;
const fs::path root = TREERING_SOURCE_DIR;

/// The lines without their indentation.
std::vector<std::string> lines_of(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const auto begin = line.find_first_not_of(' ');
    lines.push_back(begin == std::string::npos ? "" : line.substr(begin));
  }
  return lines;
}

std::string contents_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Calls f(match) for every match in the text.
template <class F>
void for_each_match(const std::string& text, const char* pattern, F f) {
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    f(*match);
}

TEST(Docs, LinksLeadSomewhere) {
  std::vector<fs::path> pages{root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  ASSERT_GT(pages.size(), 5u);
  for (const fs::path& page : pages)
    for_each_match(contents_of(page), R"(\[[^\]&][^\]]*\]\(([^)#:]+)(#[^)]*)?\))",
                   [&](const std::smatch& link) {
                     EXPECT_TRUE(fs::exists(page.parent_path() / link[1].str()))
                         << page << ": " << link[1];
                   });
}

TEST(Docs, QuotedLinesAreThoseOfTheKernelLinkedBefore) {
  std::vector<std::string> source;
  std::string name;
  int quotes = 0;
  std::ifstream page(root / "docs/algorithms.md");
  const std::vector<std::string> text = lines_of(page);
  for (auto line = text.begin(); line != text.end(); ++line) {
    for_each_match(*line, R"(\]\(\.\./(kernels/[^)]+)\))", [&](const std::smatch& link) {
      name = link[1];
      std::ifstream file(root / name);
      source = lines_of(file);
    });
    if (*line != "```cpp") continue;
    const auto begin = line + 1, end = std::find(begin, text.end(), "```");
    EXPECT_NE(std::search(source.begin(), source.end(), begin, end), source.end())
        << name << " has no such lines:\n"
        << fmt::format("{}\n", fmt::join(begin, end, "\n"));
    ++quotes;
    line = end;
  }
  EXPECT_GT(quotes, 10);
}

TEST(Docs, EveryKernelHasItsSection) {
  const std::string page = contents_of(root / "docs/algorithms.md");
  for (const Kernel& kernel : catalog)
    EXPECT_NE(page.find(fmt::format("(../kernels/{}/{}.hpp)", name(kernel.collective),
                                    name(kernel.algorithm))),
              std::string::npos)
        << name(kernel.collective) << ' ' << name(kernel.algorithm);
}

}  // namespace
}  // namespace treering

// libfmt, compiled into the program: the same as its own source file.

#include <fmt/format-inl.h>

// clang-format 14 does not know the short form.
// NOLINTNEXTLINE(modernize-concat-nested-namespaces)
namespace fmt {
inline namespace v9 {
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float x) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double x) noexcept;
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API std::locale locale_ref::get<std::locale>() const;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>,
                                 locale_ref);

}  // namespace detail
}  // namespace v9
}  // namespace fmt

#pragma once

// Sizes and times as people write and read them.

#include <cstddef>
#include <string>
#include <string_view>

namespace treering {

/// "64K", "1.5M", "2G", "12 MiB", "100": bytes. K, M, G and T are powers of 1024, in either case;
/// "B" or "iB" may follow. A fraction of a byte is dropped. Throws Error{invalid_argument} with the
/// text.
std::size_t parse_size(std::string_view text);

/// "100 B", "64 KiB", "1.5 MiB": at most two decimals. parse_size() understands it.
std::string format_size(std::size_t bytes);

/// "850 ns", "12.3 us", "4.56 ms", "1.20 s": three digits.
std::string format_time(double seconds);

}  // namespace treering

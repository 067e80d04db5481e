#include "kernels/exec/simt/mutants.hpp"

#include <cstring>

#include "kernels/exec/simt/sanitizers.hpp"

namespace treering::simt::mutants {
namespace {

struct Place {
  const char* file;  // without folders
  unsigned line;
};

// Plain arrays: all fibers use them, unseen by ThreadSanitizer.
constexpr int most_sites = 256;
Place seen[most_sites];
int seen_count = 0;
bool watching = false;

char skipped_file[128] = "";
unsigned skipped_line = 0;

TREERING_UNSEEN bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

TREERING_UNSEEN Place place_of(const std::source_location& at) {
  const char* file = at.file_name();
  for (const char* c = file; *c != '\0'; ++c)
    if (*c == '/') file = c + 1;
  return {file, at.line()};
}

TREERING_UNSEEN void note(const Place& place) {
  for (int i = 0; i < seen_count; ++i)
    if (seen[i].line == place.line && same_text(seen[i].file, place.file)) return;
  if (seen_count < most_sites) seen[seen_count++] = place;
}

}  // namespace

Switches switches{};

void weaken(Site site) { switches.weak[static_cast<int>(site)] = true; }

void skip_barrier(const BarrierSite& site) {
  std::strncpy(skipped_file, site.file.c_str(), sizeof skipped_file - 1);
  skipped_line = site.line;
  switches.barriers = true;
}

void watch_barriers() {
  seen_count = 0;
  watching = switches.barriers = true;
}

std::vector<BarrierSite> barrier_sites() {
  std::vector<BarrierSite> sites;
  for (int i = 0; i < seen_count; ++i) sites.push_back({seen[i].file, seen[i].line});
  return sites;
}

void heal() {
  switches = {};
  skipped_line = 0;
  watching = false;
}

TREERING_UNSEEN bool skips(const std::source_location& at) {
  const Place place = place_of(at);
  if (watching) note(place);
  return place.line == skipped_line && same_text(place.file, skipped_file);
}

}  // namespace treering::simt::mutants

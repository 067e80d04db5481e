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
int sites_seen = 0;
int count_seen = 0;
bool watching = false;

char skipped_file[128] = "";
unsigned skipped_line = 0;
int skipped_number = -1;

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

TREERING_UNSEEN void note(const Place& place, int passed) {
  if (passed > count_seen) count_seen = passed;
  for (int i = 0; i < sites_seen; ++i)
    if (seen[i].line == place.line && same_text(seen[i].file, place.file)) return;
  if (sites_seen < most_sites) seen[sites_seen++] = place;
}

}  // namespace

Switches switches{};

void weaken(Site site) { switches.weak[static_cast<int>(site)] = true; }

void no_acquire(Site site) { switches.no_acquire[static_cast<int>(site)] = true; }

void skip_barrier(const BarrierSite& site) {
  std::strncpy(skipped_file, site.file.c_str(), sizeof skipped_file - 1);
  skipped_line = site.line;
  switches.barriers = true;
}

void skip_barrier(int number) {
  skipped_number = number;
  switches.barriers = true;
}

void watch_barriers() {
  sites_seen = count_seen = 0;
  watching = switches.barriers = true;
}

std::vector<BarrierSite> barrier_sites() {
  std::vector<BarrierSite> sites;
  for (int i = 0; i < sites_seen; ++i) sites.push_back({seen[i].file, seen[i].line});
  return sites;
}

int barrier_count() { return count_seen; }

void heal() {
  switches = {};
  skipped_line = 0;
  skipped_number = -1;
  watching = false;
}

TREERING_UNSEEN bool skips(const std::source_location& at, int& passed) {
  const Place place = place_of(at);
  const int number = passed++;
  if (watching) note(place, passed);
  return number == skipped_number ||
         (place.line == skipped_line && same_text(place.file, skipped_file));
}

}  // namespace treering::simt::mutants

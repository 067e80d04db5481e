// The tests' main(): in the simt execution, with the fault planted that TREERING_TEST_FAULT names:
// `weak:post`, `no acquire:credit` (or another Site), `skip:file.hpp:63`, or none.

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "kernels/exec/simt/mutants.hpp"

namespace {

void plant(const std::string& fault) {
  using namespace treering::simt;
  for (int i = 0; i < treering::sites; ++i) {
    const auto site = static_cast<treering::Site>(i);
    if (fault == std::string("weak:") + name(site)) mutants::weaken(site);
    if (fault == std::string("no acquire:") + name(site)) mutants::no_acquire(site);
  }
  if (fault.starts_with("skip:")) {
    const std::size_t colon = fault.rfind(':');
    mutants::skip_barrier(
        {fault.substr(5, colon - 5), static_cast<unsigned>(std::stoul(fault.substr(colon + 1)))});
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("TREERING_DEVICE", "simt", 1);
  setenv("TREERING_INBOX", "4K", 1);  // two small slots a wire, so that they are used again at once
  setenv("TREERING_SLOT", "1K", 1);
  setenv("TREERING_BLOCKS", "2", 1);
  if (const char* fault = std::getenv("TREERING_TEST_FAULT")) plant(fault);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

# Compiler options that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# The shared library shows what the public headers declare, and nothing else.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Release keeps assertions and line numbers. Sanitize is for builds with TREERING_SANITIZER.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_package(Threads REQUIRED)

# Everything includes by the path from the root, and the public headers as <treering/…>. Products are not
# contracted into sums, so that all executions compute the same bits. Warnings are off where GCC 12 sees what is
# not there: in fmt::join (stringop-overflow), in "text" + std::string (restrict), and in lambdas that own what an
# out-parameter of CUDA returned (dangling-pointer).
add_library(treering_options INTERFACE)
target_include_directories(treering_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/base/include ${PROJECT_SOURCE_DIR}/collectives/include)
target_compile_options(treering_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Werror;-Wno-stringop-overflow;-Wno-restrict;-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror,-Wno-dangling-pointer,-ffp-contract=off>)
target_link_libraries(treering_options INTERFACE Threads::Threads)

set(sanitizers_thread -fsanitize=thread)
# The vptr check probes memory through a pipe, and finds fault where a test has used up all descriptors.
set(sanitizers_address -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined)
if(TREERING_SANITIZER)
  if(NOT DEFINED sanitizers_${TREERING_SANITIZER})
    message(FATAL_ERROR "TREERING_SANITIZER=${TREERING_SANITIZER}: valid are address and thread.")
  endif()
  # GCC 12 with sanitizers finds fault inside std::regex.
  target_compile_options(treering_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${sanitizers_${TREERING_SANITIZER}};-Wno-maybe-uninitialized>)
  target_link_options(treering_options INTERFACE ${sanitizers_${TREERING_SANITIZER}})
endif()

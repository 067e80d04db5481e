# The CUDA toolkit, for TREERING_CUDA. CMAKE_CUDA_ARCHITECTURES says what to compile for; the preset `cuda`
# names all that are supported.
find_program(nvcc_program nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin NO_CACHE)
if(NOT CMAKE_CUDA_COMPILER)
  if(NOT nvcc_program)
    message(FATAL_ERROR "TREERING_CUDA needs the CUDA toolkit: no nvcc in PATH or /usr/local/cuda. "
      "Install it, set CMAKE_CUDA_COMPILER to its nvcc, or use the preset `host`.")
  endif()
  set(CMAKE_CUDA_COMPILER ${nvcc_program})
endif()
set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100 CACHE STRING "GPU architectures to compile for")
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 does not know that nvcc speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

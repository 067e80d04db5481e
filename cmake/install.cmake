# `cmake --install`: the shared library, its headers, the command `treering`, and what find_package(treering) and
# pkg-config read. Nothing in it depends on where it is installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/treering)

install(TARGETS treering_library EXPORT treering
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS treering RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY base/include/treering collectives/include/treering DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The exported targets need no others, so they are the whole package.
install(EXPORT treering FILE treering-config.cmake NAMESPACE treering:: DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/treering-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/treering-config-version.cmake DESTINATION ${package_folder})

file(RELATIVE_PATH path_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/treering.pc.in ${PROJECT_BINARY_DIR}/treering.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/treering.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

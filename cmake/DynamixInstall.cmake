# install(): the rooms as an exported package. A consumer writes
#   find_package(dynamix REQUIRED)
#   target_link_libraries(app PRIVATE dynamix::core dynamix::policies)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY DYNAMIX_ROOMS)
foreach(room IN LISTS rooms)
  install(TARGETS dynamix_${room} EXPORT dynamixTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/dynamix/${room}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamix
          FILES_MATCHING PATTERN "*.h" PATTERN "*_conformance.h" EXCLUDE
          PATTERN "sample_round.h" EXCLUDE PATTERN "testdata" EXCLUDE)
endforeach()
install(TARGETS dynamix RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios ${PROJECT_SOURCE_DIR}/workloads
                  ${PROJECT_SOURCE_DIR}/policies
        DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamix)
install(EXPORT dynamixTargets NAMESPACE dynamix:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dynamix)
configure_package_config_file(cmake/dynamixConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dynamix)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
              ${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dynamix)

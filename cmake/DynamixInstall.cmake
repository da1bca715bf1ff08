# install(): the rooms as an exported package. A consumer writes
#   find_package(dynamix REQUIRED)
#   target_link_libraries(app PRIVATE dynamix::core dynamix::policies)
# and, for the rooms that need gRPC or libtorch, find_package(dynamix REQUIRED COMPONENTS rpc training).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY DYNAMIX_ROOMS)
foreach(room IN LISTS rooms)
  set(export dynamixTargets)
  if(room STREQUAL "training")
    set(export dynamixTrainingTargets)
  elseif(room STREQUAL "rpc")
    set(export dynamixRpcTargets)
  endif()
  install(TARGETS dynamix_${room} EXPORT ${export} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/dynamix/${room}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamix
          FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE PATTERN "testdata" EXCLUDE
          PATTERN "async_server.h" EXCLUDE PATTERN "listener.h" EXCLUDE
          PATTERN "metrics_server.h" EXCLUDE PATTERN "pem.h" EXCLUDE
          PATTERN "server_tls.h" EXCLUDE)
endforeach()
install(TARGETS dynamix RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/packaging/dynamix-arbitrator.service
        DESTINATION lib/systemd/system)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios ${PROJECT_SOURCE_DIR}/workloads
                  ${PROJECT_SOURCE_DIR}/policies
        DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamix)
set(dynamix_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/dynamix)
install(EXPORT dynamixTargets NAMESPACE dynamix:: DESTINATION ${dynamix_cmake_folder})
install(EXPORT dynamixRpcTargets NAMESPACE dynamix:: DESTINATION ${dynamix_cmake_folder})
if(DYNAMIX_WITH_TORCH)
  install(EXPORT dynamixTrainingTargets NAMESPACE dynamix:: DESTINATION ${dynamix_cmake_folder})
endif()
configure_package_config_file(cmake/dynamixConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
  INSTALL_DESTINATION ${dynamix_cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
              ${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
        DESTINATION ${dynamix_cmake_folder})

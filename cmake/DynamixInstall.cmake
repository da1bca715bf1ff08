# install(): programs and data, and the rooms as an exported package. A consumer writes
#   find_package(dynamix REQUIRED)
#   target_link_libraries(app PRIVATE dynamix::core dynamix::policies)
# and, for the rooms that need gRPC or libtorch, find_package(dynamix REQUIRED COMPONENTS rpc training).
# Programs in C, or those that link another gRPC, take dynamix::client (dynamix.h).
#
# Each file belongs to one component: a Debian package of DynamixPackages.cmake. A rule that names
# none belongs to `dynamix` (CMAKE_INSTALL_DEFAULT_COMPONENT_NAME).
include(CMakePackageConfigHelpers)

# dynamix: programs, data, unit.
install(TARGETS dynamix RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(DYNAMIX_WITH_TORCH)
  # Where HelperProgram (dynamix/cli/helper_program.h) looks.
  install(TARGETS dynamix_train dynamix_torchscript RUNTIME DESTINATION libexec/dynamix)
endif()
# Where DataFolder (dynamix/cli/data_folder.h) looks.
install(DIRECTORY scenarios workloads policies packaging/grafana DESTINATION share/dynamix)
install(PROGRAMS scripts/fetch-cifar10 scripts/fetch-text scripts/make-certs
        DESTINATION share/dynamix/scripts)
install(FILES packaging/dynamix-arbitrator.service DESTINATION lib/systemd/system)
install(FILES README.md DESTINATION share/doc/dynamix)
install(DIRECTORY docs DESTINATION share/doc/dynamix)

# What the program says of itself (dynamix/cli/manual_command.h), at build time: cpack builds nothing.
if(DYNAMIX_WITH_TORCH AND NOT DYNAMIX_SANITIZER)
  set(said ${PROJECT_BINARY_DIR}/said)
  add_custom_command(
    OUTPUT ${said}/dynamix.1.gz ${said}/dynamix.bash ${said}/_dynamix ${said}/dynamix.fish
    COMMAND ${CMAKE_COMMAND} -E make_directory ${said}
    COMMAND dynamix manual > ${said}/dynamix.1
    COMMAND gzip -9nf ${said}/dynamix.1
    COMMAND dynamix completion bash > ${said}/dynamix.bash
    COMMAND dynamix completion zsh > ${said}/_dynamix
    COMMAND dynamix completion fish > ${said}/dynamix.fish
    DEPENDS dynamix dynamix_train)
  add_custom_target(dynamix_said ALL DEPENDS ${said}/dynamix.1.gz)
  install(FILES ${said}/dynamix.1.gz DESTINATION share/man/man1)
  install(FILES ${said}/dynamix.bash DESTINATION share/bash-completion/completions RENAME dynamix)
  install(FILES ${said}/_dynamix DESTINATION share/zsh/vendor-completions)
  install(FILES ${said}/dynamix.fish DESTINATION share/fish/vendor_completions.d)
endif()

# client: the library behind dynamix.h. dev: headers, static rooms, their targets.
install(TARGETS dynamix_client EXPORT dynamixClientTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client NAMELINK_COMPONENT dev)
install(FILES dynamix/rpc/dynamix.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES examples/mpi_training.c examples/own_training.cc
        DESTINATION share/doc/libdynamix-dev/examples COMPONENT dev)
get_property(rooms GLOBAL PROPERTY DYNAMIX_ROOMS)
foreach(room IN LISTS rooms)
  set(export dynamixTargets)
  if(room STREQUAL "training")
    set(export dynamixTrainingTargets)
  elseif(room STREQUAL "rpc" OR room STREQUAL "dashboard")
    set(export dynamixRpcTargets)
  endif()
  install(TARGETS dynamix_${room} EXPORT ${export}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(DIRECTORY dynamix/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamix COMPONENT dev
          FILES_MATCHING PATTERN "*.h" PATTERN "testing" EXCLUDE PATTERN "testdata" EXCLUDE
          PATTERN "async_server.h" EXCLUDE PATTERN "listener.h" EXCLUDE
          PATTERN "pem.h" EXCLUDE PATTERN "server_tls.h" EXCLUDE)
endforeach()
set(dynamix_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/dynamix)
set(exports dynamixTargets dynamixRpcTargets dynamixClientTargets)
if(DYNAMIX_WITH_TORCH)
  list(APPEND exports dynamixTrainingTargets)
endif()
foreach(export IN LISTS exports)
  install(EXPORT ${export} NAMESPACE dynamix:: DESTINATION ${dynamix_cmake_folder} COMPONENT dev)
endforeach()
configure_package_config_file(cmake/dynamixConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
  INSTALL_DESTINATION ${dynamix_cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dynamixConfig.cmake
              ${PROJECT_BINARY_DIR}/dynamixConfigVersion.cmake
        DESTINATION ${dynamix_cmake_folder} COMPONENT dev)

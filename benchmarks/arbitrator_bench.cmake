# arbitrator_bench: needs gRPC and the generated messages.
find_package(gRPC REQUIRED)
add_executable(arbitrator_bench ${CMAKE_CURRENT_LIST_DIR}/arbitrator_bench.cc)
target_include_directories(arbitrator_bench SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(arbitrator_bench PRIVATE dynamix::rpc dynamix::policies gRPC::grpc++
                                               protobuf::libprotobuf dynamix_flags)

# The arbitrator under faults: a small job, real processes.
add_executable(advised_job advised_job.cc)
target_link_libraries(advised_job PRIVATE dynamix::rpc dynamix_flags)

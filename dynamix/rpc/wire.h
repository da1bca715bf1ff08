// Between messages.h and the generated classes, which stay inside this room's .cc files.
#pragma once

#include "dynamix/rpc/messages.h"

namespace dynamix::v1 {
class JoinRequest;
class JoinResponse;
class OpenRequest;
class Opening;
class ReportRequest;
class Advice;
class Worker;
}  // namespace dynamix::v1

namespace dynamix {

void Write(const WorkerName& name, v1::Worker& to);
void Write(const JoinMessage& message, v1::JoinRequest& to);
void Write(const OpenMessage& message, v1::OpenRequest& to);
void Write(const Opening& message, v1::Opening& to);
void Write(const Welcome& message, v1::JoinResponse& to);
void Write(const ReportMessage& message, v1::ReportRequest& to);
void Write(const Advice& message, v1::Advice& to);

Result<WorkerName> Read(const v1::Worker& from);
Result<JoinMessage> Read(const v1::JoinRequest& from);
Result<OpenMessage> Read(const v1::OpenRequest& from);
Result<Opening> Read(const v1::Opening& from);
Result<Welcome> Read(const v1::JoinResponse& from);
Result<ReportMessage> Read(const v1::ReportRequest& from);
Result<Advice> Read(const v1::Advice& from);

}  // namespace dynamix

// Who may speak to whom: certificates, tokens, addresses. Plain values and pure functions.
//
// A worker's certificate carries its identity as a URI in the subject's alternative names:
//   dynamix://job/JOB/rank/RANK   that rank of that job
//   dynamix://job/JOB/rank/*      any rank of that job
//   dynamix://admin               may swap policies and read metrics
//   dynamix://metrics             may read metrics
// scripts/make-certs makes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dynamix/rpc/messages.h"

namespace dynamix {

// PEM texts. All three, or none.
struct TlsFiles {
  std::string authority, certificate, key;
  bool empty() const { return authority.empty() && certificate.empty() && key.empty(); }
};

// What is wrong with these files: not PEM, an authority that is none, a key of another certificate,
// a certificate that has expired. Empty: nothing.
std::string CheckTls(const TlsFiles& files);

// Do these names of a certificate allow to speak as `worker`, as an administrator, to read metrics?
bool MaySpeakAs(const std::vector<std::string>& names, const WorkerName& worker);
bool MayAdminister(const std::vector<std::string>& names);
bool MayReadMetrics(const std::vector<std::string>& names);

// Same text; takes the same time wherever they differ.
bool SameToken(std::string_view given, std::string_view wanted);

}  // namespace dynamix

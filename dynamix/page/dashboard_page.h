// The dashboard's page and what it loads from its server. Pure.
#pragma once

#include <string>

namespace dynamix {

std::string DashboardPage();
std::string DashboardScript();
std::string DashboardStyle();

}  // namespace dynamix

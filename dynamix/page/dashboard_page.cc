#include "dynamix/page/dashboard_page.h"

#include "dynamix/page/assets.h"

namespace dynamix {

std::string DashboardPage() {
  return R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>DYNAMIX jobs</title><link rel="stylesheet" href="style.css">
</head><body>
<h1>DYNAMIX jobs <small id="state">connecting</small> <button type="button" id="pause">pause</button></h1>
<div class="scroll"><table><thead><tr><th>job</th><th>policy</th><th>workers</th><th>rounds</th>
<th>clock</th><th>global batch</th><th>accuracy</th><th>late</th></tr></thead>
<tbody id="jobs"></tbody></table></div>
<p class="lead" id="none">No job has reported yet.</p>
<p class="lead"><label>compare with <select id="other"><option value="">nothing</option></select></label></p>
<div id="job"></div>
<script src="dashboard.js"></script>
</body></html>
)";
}

std::string DashboardScript() {
  return std::string(kChartsScript) + kRunViewScript + kDashboardScript;
}

std::string DashboardStyle() { return kStyleSheet; }

}  // namespace dynamix

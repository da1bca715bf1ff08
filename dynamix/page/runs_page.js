// The page of finished runs: draws what C++ put into the page as JSON.
'use strict';

function drawPage() {
  const data = JSON.parse(document.getElementById('data').textContent);
  const quality = new QualityChart(new View(), data.runs[0].config.target.by_loss);
  document.getElementById('quality').append(quality.figures);
  quality.draw(data.runs);
  for (const [i, run] of data.runs.entries()) {
    const place = document.getElementById(`run-${i}`);
    if (!place) continue;
    const view = new RunView(run);
    place.append(view.root);
    view.draw();
  }
}

drawPage();

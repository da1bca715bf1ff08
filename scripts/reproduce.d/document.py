"""docs/results.md: parts between markers, each made from docs/results/NAME.json and its experiment's template.

    <!-- reproduce:NAME -->
    ...
    <!-- /reproduce:NAME -->

An experiment's part(found) gives a Part: goals with what was found, the text below them, and charts. What surrounds them
(when, with which commands, of which policy) is the same for all."""
import dataclasses
import json
import pathlib
import re

import steps
from figures import list_of, prose, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIELDS = {"experiment", "begun", "date", "policy", "version", "minutes", "commands", "found"}  # of an experiment's data


class Refused(Exception):
    pass


@dataclasses.dataclass
class Goal:
    text: str
    result: str
    met: bool


@dataclasses.dataclass
class Part:
    goals: list
    text: str
    charts: dict = dataclasses.field(default_factory=dict)  # file name without ending -> what `dynamix chart` reads
    verdict: str = ""  # a sentence for the head of the page


def marker(name):
    return f"<!-- reproduce:{name} -->", f"<!-- /reproduce:{name} -->"


def split(docs, name):
    """The page before the part, the part, and the page after it."""
    path = docs / "results.md"
    text = path.read_text() if path.exists() else ""
    begin, end = marker(name)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise Refused(f"{path} has no place for {name}: write the lines {begin} and {end}, once, where its part belongs")
    before, rest = text.split(begin)
    return before + begin, *rest.split(end)


def require_markers(docs, name):
    split(docs, name)


def replace(docs, name, text):
    before, _, after = split(docs, name)
    steps.write_whole(docs / "results.md", f"{before}\n{text.strip()}\n{marker(name)[1]}{after}")


def data_file(docs, name):
    return docs / "results" / f"{name}.json"


def save(docs, name, data):
    path = data_file(docs, name)
    path.parent.mkdir(exist_ok=True)
    steps.write_whole(path, compact(data) + "\n")


def compact(data, indent=0, width=140):
    """JSON with a line per entry, as long as lines stay short: small to keep, easy to compare."""
    flat = json.dumps(data)
    if len(flat) + indent <= width or not isinstance(data, (dict, list)):
        return flat
    pad = " " * (indent + 1)
    if isinstance(data, dict):
        inside = [f"{pad}{json.dumps(key)}: {compact(value, indent + 1, width)}" for key, value in data.items()]
        return "{\n" + ",\n".join(inside) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + compact(value, indent + 1, width) for value in data) + "\n" + " " * indent + "]"


def load(docs, name):
    path = data_file(docs, name)
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(), parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise Refused(damaged(path, name, error)) from None
    if not is_whole(data) or data["experiment"] != name:
        raise Refused(damaged(path, name, f"expected the data of {name}: {', '.join(sorted(FIELDS))}"))
    return data


def no_number(text):
    raise ValueError(f"{text} is no number")


def is_whole(data):
    return (isinstance(data, dict) and FIELDS <= data.keys() and all(isinstance(data[key], str) for key in ("begun", "date")) and
            isinstance(data["minutes"], (int, float)) and isinstance(data["version"], int) and bool(data["found"]) and
            isinstance(data["policy"], (str, type(None))) and isinstance(data["commands"], list) and
            all(isinstance(one, str) for one in data["commands"]))


def damaged(path, name, why):
    return f"{path} is damaged ({why}): bring it back (git checkout), or remove it and run {name} again"


def part_of(docs, name, module, data):
    """What the experiment makes of its data."""
    try:
        return module.part(data["found"])
    except (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise Refused(damaged(data_file(docs, name), name, f"{type(error).__name__}: {error}")) from error


def cost(name, module):
    place = steps.Place(ROOT / "runs/reproduce" / name, ROOT, False, 2)
    return f"{steps.minutes(module.steps(place), 2):.0f} minutes on two cores"


def duration(minutes):
    return f"{60 * minutes:.0f} seconds" if minutes < 2 else f"{minutes:.0f} minutes"


def command_block(commands):
    """Shell commands, folded at 100 characters."""
    lines = []
    for command in commands:
        line = ""
        for word in command.split(" "):
            if line and len(line) + len(word) > 96:
                lines.append(line + " \\")
                line = " "
            line += (" " if line else "") + word
        lines.append(line)
    return "\n".join(["```", *lines, "```"])


def of_policy(data):
    """Which policy `default` was, and whether it and the code still are those of today."""
    is_today = data["version"] == steps.code_version(ROOT)
    if not data["policy"]:
        text = "The shipped policy takes no part."
        return text if is_today else f"{text} **The code has changed since: run it again.**"
    shipped = steps.policy_checksum(ROOT)
    text = f"`default` is the policy `{data['policy'][:12]}`"
    if data["policy"] == shipped and is_today:
        return text + ", which ships."
    if data["policy"] == shipped:
        return f"**{text}, which ships, in code that has changed since: run it again.**"
    return f"**{text}, which no longer ships (`{shipped[:12]}` does): run it again.**"


def text_of(name, module, data, part=None):
    if data is None:
        return "\n\n".join([f"## {module.TITLE}", prose(module.CLAIM),
                            prose(f"**Not run yet** with the policy that ships: `scripts/reproduce {name}`, about "
                                  f"{cost(name, module)}.{' ' + module.BEFORE if getattr(module, 'BEFORE', '') else ''}")])
    part = part or module.part(data["found"])
    days = data["date"] if data["begun"] == data["date"] else f"{data['begun']} to {data['date']}"
    made = (f"Made by `scripts/reproduce {name}` on {days}, {duration(data['minutes'])} of commands, added up (runs that were kept "
            f"from before take none). {of_policy(data)} What it is made of: [results/{name}.json](results/{name}.json).")
    if data.get("missing"):
        made += f" **Not run yet of it:** {list_of(data['missing'])}."
    images = "\n\n".join(f"![{chart['title']}](images/{file}.svg)" for file, chart in part.charts.items())
    rows = [[goal.text, goal.result, "yes" if goal.met else "no"] for goal in part.goals]
    goals = table(["goal", "result", "met?"], rows) if rows else ""
    blocks = [f"## {module.TITLE}", prose(module.CLAIM), goals, part.text.strip(), images, prose(made),
              command_block(data["commands"])]
    return "\n\n".join(block for block in blocks if block)


def write_part(docs, name, module, draw):
    data = load(docs, name)
    part = part_of(docs, name, module, data) if data else None
    replace(docs, name, text_of(name, module, data, part))
    for file, chart in (part.charts if part else {}).items():
        draw(chart, docs / "images" / f"{file}.svg")


def anchor(title):
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def write_goals(docs, modules):
    """The table of all goals, where it has a place."""
    rows, in_part, verdicts = [], [], []
    for name, module in modules.items():
        data, link = load(docs, name), f"[{module.TITLE}](#{anchor(module.TITLE)})"
        if data is None:
            rows.append([link, f"`scripts/reproduce {name}`", "not run yet", "-"])
            continue
        in_part += [module.TITLE] if data.get("missing") else []
        part = part_of(docs, name, module, data)
        rows += [[link, goal.text, goal.result, "yes" if goal.met else "no"] for goal in part.goals]
        if part.goals:
            verdicts.append([link, f"{sum(goal.met for goal in part.goals)} of {len(part.goals)}", part.verdict or "-"])
    met, asked = sum(row[3] == "yes" for row in rows), sum(row[3] != "-" for row in rows)
    waiting = sum(row[3] == "-" for row in rows)
    lead = f"{met} of {asked} goals are met."
    if waiting:
        lead += f" {waiting} of {len(modules)} experiments have not been run yet."
    if in_part:
        lead += f" Not counted is what is not run yet of {list_of(in_part)}."
    replace(docs, "goals", "\n\n".join([prose(lead), table(["experiment", "goals met", "in short"], verdicts), "All goals:",
                                        table(["experiment", "goal", "result", "met?"], rows)]))

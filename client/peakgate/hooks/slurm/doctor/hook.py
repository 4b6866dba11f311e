"""The controller's side: the plugin, its script, our module in it, and LuaSocket."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peakgate.client.doctor.check import Check, State
from peakgate.client.slurm_defaults import GATE_SOCKET
from peakgate.hooks.slurm.doctor.site import Site
from peakgate.hooks.slurm.wire import VERSION

PLUGIN = "job_submit_lua.so"
LUA_SECONDS = 10.0
TESTED, OLDEST = (22, 5), (20, 11)
"""The release that the suite runs, and the oldest whose job descriptions have the fields that are read."""

_LIBRARY = re.compile(r"liblua-?(5\.\d)")
_OUR_VERSION = re.compile(r"^local VERSION = (\d+)", re.MULTILINE)

# Runs a job_submit.lua as the plugin would, in an interpreter of its own, and says what came of it.
_PROBE = r"""
local function say(name, value) print(name .. "\t" .. (tostring(value):gsub("[\r\n\t]", " "))) end
local function logged(format, ...)
  local done, text = pcall(string.format, format, ...)
  say("log", done and text or format)
end
local function quiet() end
slurm = setmetatable({ SUCCESS = 0, ERROR = -1, FAILURE = -1, log_error = logged }, { __index = function() return quiet end })
local chunk, problem = loadfile(arg[1])
if not chunk then say("fault", problem) os.exit(0) end
local done, result = pcall(chunk)
if not done then say("fault", result) os.exit(0) end
say("returned", result)
for _, name in ipairs({ "slurm_job_submit", "slurm_job_modify" }) do say(name, type(_G[name])) end
local module = package.loaded.peakgate
say("module", type(module))
if type(module) == "table" and type(module.settings) == "table" then
  say("socket", module.settings.socket)
  say("stamp", module.settings.stamp_field)
end
if package.searchpath then say("file", package.searchpath("peakgate", package.path) or "") end
say("path", package.path)
say("luasocket", pcall(require, "socket") and pcall(require, "socket.unix"))
"""


@dataclass(frozen=True, slots=True)
class Script:
    """What an interpreter says of the site's script. `problem`: why it was not run; `found` by name, and the lines that it logged."""

    found: dict[str, str]
    logged: tuple[str, ...] = ()
    problem: str = ""

    @property
    def socket(self) -> Path:
        """Where the module asks."""
        return Path(self.found.get("socket") or GATE_SOCKET)

    @property
    def module(self) -> Path | None:
        """The module's file."""
        if self.found.get("file"):
            return Path(self.found["file"])
        places = [Path(place.replace("?", "peakgate")) for place in self.found.get("path", "").split(";") if place.startswith("/")]
        return next((place for place in places if place.exists()), None)


def hook_checks(site: Site, script: Script) -> Iterator[Check]:
    """From the plugin inwards; what a missing step makes meaningless is left out."""
    yield release(site)
    yield plugin(site)
    yield plugin_file(site)
    readable = script_file(site)
    yield readable
    if readable.state is State.bad:
        return
    loads = script_loads(site, script)
    yield loads
    if loads.state is State.ok:
        yield module(script)
        yield luasocket(script)


def release(site: Site) -> Check:
    """Slurm's version."""
    told = site.settings.get("SLURM_VERSION", "unknown")
    if site.version < OLDEST:
        return Check(
            name="slurm", state=State.bad, found=f"{told} is older than 20.11", remedy="upgrade Slurm; its job descriptions lack fields"
        )
    if site.version != TESTED:
        return Check(name="slurm", state=State.note, found=f"{told}; tested is 22.05, and of later releases what they write of a job")
    return Check(name="slurm", state=State.ok, found=f"{told}, cluster {site.cluster}")


def plugin(site: Site) -> Check:
    """Whether the controller asks a Lua script."""
    if "lua" in site.plugins:
        return Check(name="plugin", state=State.ok, found="JobSubmitPlugins has lua")
    remedy = "add lua to JobSubmitPlugins in slurm.conf and restart slurmctld; until then only `peakgate sbatch` checks jobs"
    return Check(name="plugin", state=State.bad, found=f"JobSubmitPlugins is {', '.join(sorted(site.plugins)) or 'empty'}", remedy=remedy)


def plugin_file(site: Site) -> Check:
    """Whether it is installed; a controller that cannot load a plugin does not start."""
    places = [Path(place) for place in site.settings.get("PluginDir", "").split(":") if place]
    found = next((place / PLUGIN for place in places if (place / PLUGIN).exists()), None)
    if found is None:
        remedy = "nothing to do when this is not the controller's host; else install the package with Slurm's Lua plugins"
        return Check(
            name="plugin file", state=State.note, found=f"no {PLUGIN} in {site.settings.get('PluginDir', 'PluginDir')}", remedy=remedy
        )
    return Check(name="plugin file", state=State.ok, found=f"{found}, Lua {lua_version(found) or 'of a version that it does not say'}")


def script_file(site: Site) -> Check:
    """Whether job_submit.lua is beside slurm.conf, and the controller may read it."""
    path = site.script
    try:
        mode = path.stat().st_mode
    except OSError as error:
        remedy = f"copy deploy/slurm/job_submit.lua to {path.parent}, or its marked lines into your own; on another host run this there"
        return Check(name="script", state=State.bad, found=f"{path}: {error.strerror}", remedy=remedy)
    if site.user_id and not mode & 0o004:
        return Check(
            name="script", state=State.bad, found=f"{path} cannot be read by all", remedy=f"chmod a+r {path}: {site.user} reads it"
        )
    return Check(name="script", state=State.ok, found=str(path))


def script_loads(site: Site, script: Script) -> Check:
    """Whether it runs in the plugin's Lua and has what the plugin calls: a script with a fault leaves the one before it in force."""
    name, found = "script runs", script.found
    if script.problem:
        return Check(
            name=name,
            state=State.note,
            found=script.problem,
            remedy="install the interpreter to have the script tried: apt-get install lua5.1",
        )
    if "fault" in found:
        remedy = "mend it: the controller keeps the script it had before, and does not start with this one"
        return Check(name=name, state=State.bad, found=found["fault"], remedy=remedy)
    missing = [each for each in ("slurm_job_submit", "slurm_job_modify") if found.get(each) != "function"]
    if missing or found.get("returned") != "0":
        told = f"{' and '.join(missing)} missing" if missing else f"it returns {found.get('returned')}"
        return Check(name=name, state=State.bad, found=told, remedy="it has both functions and ends with `return slurm.SUCCESS`")
    return Check(name=name, state=State.ok, found=f"{site.script.name} loads" + "".join(f"; it says: {line}" for line in script.logged[:1]))


def module(script: Script) -> Check:
    """Whether the script loads peakgate.lua, and of which version."""
    if script.found.get("module") != "table":
        told = script.logged[0] if script.logged else "job_submit.lua does not require it"
        remedy = "put peakgate.lua beside slurm.conf, and the marked lines of deploy/slurm/job_submit.lua into your job_submit.lua"
        return Check(name="module", state=State.bad, found=f"peakgate.lua is not loaded: {told}", remedy=remedy)
    path = script.module
    spoken = _version_of(path)
    if spoken is not None and spoken != VERSION:
        remedy = "install peakgate.lua and the gate of one release"
        return Check(name="module", state=State.bad, found=f"{path} speaks version {spoken}, the gate {VERSION}", remedy=remedy)
    return Check(name="module", state=State.ok, found=f"{path or 'peakgate.lua'}, asks at {script.socket}{_stamps(script)}")


def _stamps(script: Script) -> str:
    field = script.found.get("stamp", "")
    return f", stamps {field}" if field else ""


def luasocket(script: Script) -> Check:
    """Without it nothing is asked, and every job is admitted unchecked."""
    if script.found.get("luasocket") == "true":
        return Check(name="luasocket", state=State.ok, found="socket and socket.unix load")
    remedy = "install LuaSocket for the plugin's Lua on the controller's host (Debian: apt-get install lua-socket), then restart slurmctld"
    return Check(name="luasocket", state=State.bad, found='require "socket.unix" fails: every job is admitted unchecked', remedy=remedy)


def try_script(site: Site) -> Script:
    """Runs the site's script in the plugin's Lua, as the controller's user where we may."""
    places = [Path(place) / PLUGIN for place in site.settings.get("PluginDir", "").split(":") if place]
    version = next((found for place in places if place.exists() and (found := lua_version(place))), "5.1")
    program = shutil.which(f"lua{version}")
    if program is None:
        return Script({}, problem=f"not tried: no lua{version} here, which the plugin is built with")
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter, on the site's own script
            [program, "-", str(site.script)], input=_PROBE, capture_output=True, text=True, errors="replace", timeout=LUA_SECONDS,
            check=False, cwd="/", user=_lowered(site),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Script({"fault": f"{site.script} does not end within {LUA_SECONDS:.0f} s"})
    except OSError as error:
        return Script({}, problem=f"not tried: {error.strerror}")
    pairs = [line.partition("\t") for line in done.stdout.splitlines()]
    told = {name: value for name, _, value in pairs if name != "log"}
    return Script(told or {"fault": done.stderr.strip()[:200]}, tuple(value for name, _, value in pairs if name == "log"))


def _lowered(site: Site) -> int | None:
    return site.user_id if os.geteuid() == 0 and site.user_id else None


def lua_version(path: Path) -> str:
    """The Lua that a plugin is linked with; empty: it does not say."""
    try:
        match = _LIBRARY.search(path.read_bytes().decode("latin-1"))
    except OSError:
        return ""
    return match[1] if match else ""


def _version_of(path: Path | None) -> int | None:
    try:
        match = _OUR_VERSION.search(path.read_text(errors="replace")) if path is not None else None
    except OSError:
        return None
    return int(match[1]) if match else None

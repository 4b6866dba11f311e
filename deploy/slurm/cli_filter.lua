-- Advice at the prompt for sites that cannot, or would not, put `peakgate sbatch` before sbatch: CliFilterPlugins=cli_filter/lua.
--
-- Runs on the submit host in sbatch, srun and salloc themselves, as the user, with the user's rights. So it can read the config files
-- that a script names, and so it can be gone around: a user may point SLURM_CONF elsewhere, and slurmrestd does not run it. What must hold
-- is decided by job_submit.lua and the gate.
--
-- Only a job that asks for whole GPUs costs anything: one call of the command below, ended after SECONDS whatever it does. Everything
-- else, and every fault, lets the job through.

local COMMAND = "peakgate"
local SECONDS = 5

-- What the judgement depends on. Names are those of the long options.
local OPTIONS = {
  "gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task", "nodes", "ntasks", "ntasks-per-node",
  "cpus-per-task", "mem", "mem-per-gpu", "mem-per-cpu", "constraint", "partition", "account", "qos", "chdir", "comment", "export", "wrap",
}

-- How an option that nobody gave, or that the command does not have, is written.
local NOT_GIVEN = { [""] = true, ["-2"] = true, ["0"] = true, ["1-0"] = true, ["unset"] = true, ["invalid-context"] = true }

local function quoted(text)
  return "'" .. string.gsub(text, "'", "'\\''") .. "'"
end

local function given(options, name)
  local value = options[name]
  if type(value) ~= "string" or NOT_GIVEN[value] then return nil end
  return value
end

-- gres, gpus and the like of whole GPUs; shards and MPS are shares of one.
local function asks_for_gpus(options)
  for _, name in ipairs({ "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket" }) do
    if given(options, name) then return true end
  end
  for _, name in ipairs({ "gres", "tres-per-task" }) do
    if given(options, name) and string.find(given(options, name), "gpu", 1, true) then return true end
  end
  return false
end

-- `peakgate sbatch` has judged this very process: an exec keeps its number, a job that submits others hands the variable down with another.
local function is_judged()
  local number = os.getenv("PEAKGATE_SUBMITTER")
  local file = number and io.open("/proc/self/stat", "r")
  if not file then return false end
  local own = file:read("*n")
  file:close()
  return tostring(own) == number or tonumber(number) == own
end

local function is_step(options)
  return options["type"] == "srun" and os.getenv("SLURM_JOB_ID") ~= nil
end

local function command_for(options)
  local words = { "timeout", "--kill-after=1", tostring(SECONDS), COMMAND, options["type"], "--peakgate-judge" }
  for _, name in ipairs(OPTIONS) do
    local value = given(options, name)
    if value then words[#words + 1] = quoted("--" .. name .. "=" .. value) end
  end
  if options["test-only"] == "set" then words[#words + 1] = "--test-only" end
  words[#words + 1] = "--"
  for _, word in ipairs(options["argv"] or {}) do words[#words + 1] = quoted(word) end
  -- The words come from options that users chose: each is in quotes. popen(3) tells no status in Lua 5.1, so it is printed.
  return table.concat(words, " ") .. " </dev/null; printf '\\n%s' $?"
end

local function judged(options)
  local pipe = io.popen(command_for(options), "r")
  if not pipe then return nil end
  local said = pipe:read("*a")
  pipe:close()
  local comment, status = string.match(said or "", "^(.*)\n(%d+)$")
  return comment, tonumber(status)
end

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  local done, refused = pcall(function()
    if is_judged() or is_step(options) or not asks_for_gpus(options) then return false end
    local comment, status = judged(options)
    if comment and comment ~= "" then options["comment"] = comment end
    return status == 1
  end)
  if done and refused then return slurm.ERROR end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return slurm.SUCCESS
end

return slurm.SUCCESS

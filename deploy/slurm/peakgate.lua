-- peakgate for a site's job_submit.lua: asks the gate on this host whether a GPU job fits, and never makes the controller wait for long.
--
--   local peakgate = require "peakgate"
--   function slurm_job_submit(job_desc, part_list, submit_uid) return peakgate.submit(job_desc, part_list, submit_uid) end
--
-- Lua 5.1 to 5.4. LuaSocket (Debian: lua-socket) does the talking; without it jobs are admitted with the stamp `peakgate=unchecked`.
-- Nothing is decided here: fields are collected, one line is sent, the reply is done as it says. The policy is in the gate's own file.
local peakgate = {}

peakgate.settings = {
  socket = "/run/peakgate/gate.sock",
  budget_seconds = 0.25, -- for connect, send and receive together: slurmctld holds its locks meanwhile
  breaker_failures = 3, -- in a row, after which the gate is left alone
  breaker_seconds = 30, -- for so long; then one call tries again
  reply_bytes = 8192, -- a longer reply is none
  fail_open = true, -- without an answer: true admits unchecked, false refuses
  fail_closed_partitions = {}, -- names of partitions where a job without an answer is refused, whatever fail_open says
  stamp_field = "admin_comment", -- or "extra" (Slurm 23.11 and later), or "none"
}

local VERSION = 1
local SCRIPT_BYTES = 65536
local ENVIRONMENT_BYTES = 65536
local MOST_WORDS, MOST_READS, MOST_LINES, LINE_BYTES = 200, 64, 12, 400
local HET_SECONDS = 10
local UNCHECKED = "unchecked"

-- Fields of job_desc that say what is asked of the scheduler; job_rec has fewer.
local GPU_FIELDS = { "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "gres" }
local GPU_RESOURCES = { "gpu", "shard", "mps" }
local SUBMIT_FIELDS = {
  "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "gres", "partition", "features", "comment", "name", "account",
  "default_account", "qos", "default_qos", "user_id", "user_name", "num_tasks", "ntasks_per_node", "ntasks_per_socket", "ntasks_per_gpu",
  "ntasks_per_tres", "cpus_per_task", "min_nodes", "max_nodes", "sockets_per_node", "array_inx", "het_job_offset", "req_nodes", "exc_nodes",
}
local CHANGE_FIELDS = {
  "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "gres", "partition", "features", "comment", "num_tasks",
  "ntasks_per_node", "min_nodes", "max_nodes", "req_nodes",
}
local RECORD_FIELDS = {
  "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "gres", "partition", "features", "comment", "admin_comment", "name",
  "account", "qos", "user_id", "user_name", "min_nodes", "max_nodes", "job_id",
}
-- What `peakgate sbatch` attaches; the long names are those that --export=NONE lets through.
local ENVIRONMENT = {
  "PEAKGATE_JOB", "PEAKGATE_ATTACHED", "PEAKGATE_PREDICTION", "SLURM_PEAKGATE_JOB", "SLURM_PEAKGATE_ATTACHED", "SLURM_PEAKGATE_PREDICTION",
}
-- What a reply may change of a submission.
local SETTABLE = { tres_per_node = true, tres_per_job = true, tres_per_task = true, tres_per_socket = true, features = true }

local has_socket, socket = pcall(require, "socket")
local has_unix, unix = pcall(require, "socket.unix")
local can_talk = has_socket and has_unix
local said_missing = false
local breaker = { failures = 0, away_until = 0 }
local het = {} -- uid -> what component 0 of a heterogeneous job brought: the later ones come without a script

local function log(level, text)
  local write = slurm["log_" .. level]
  if write then write("%s", "peakgate: " .. text) end
end

local function now()
  return can_talk and socket.gettime() or os.time()
end

local function plain(text)
  return (tostring(text):gsub("[^\32-\126\128-\255]", "?"):sub(1, LINE_BYTES))
end

-- Numbers that mean "not set": NO_VAL16, INFINITE16, NO_VAL, INFINITE, and those of 64 bits (slurm.h).
local function is_unset(value)
  if type(value) ~= "number" then return value == nil or value == "" end
  return value ~= value or value >= 4294967294 or value == 65534 or value == 65535
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(char) return ESCAPES[char] or string.format("\\u%04x", char:byte()) end) .. '"'
end

local function value_of(value)
  if type(value) == "number" then return string.format("%.0f", value) end
  return quoted(tostring(value))
end

local function object_of(source, names)
  local members = {}
  for _, name in ipairs(names) do
    local value = source[name]
    if not is_unset(value) and (type(value) == "string" or type(value) == "number") then
      members[#members + 1] = quoted(name) .. ":" .. value_of(value)
    end
  end
  return "{" .. table.concat(members, ",") .. "}"
end

local function words_of(job_desc)
  local argv, count, words = job_desc.argv, job_desc.argc, {}
  if type(argv) ~= "table" or is_unset(count) then return nil end
  for at = 0, math.min(count, MOST_WORDS) do
    if type(argv[at]) == "string" then words[#words + 1] = quoted(argv[at]) end
  end
  return #words > 0 and "[" .. table.concat(words, ",") .. "]" or nil
end

local function environment_of(job_desc)
  local environment, members = job_desc.environment, {}
  for _, name in ipairs(environment and ENVIRONMENT or {}) do
    local value = environment[name]
    if type(value) == "string" and value ~= "" and #value <= ENVIRONMENT_BYTES then
      members[#members + 1] = quoted(name) .. ":" .. quoted(value)
    end
  end
  return #members > 0 and "{" .. table.concat(members, ",") .. "}" or nil
end

-- Script, words and environment of a submission, as members of the request; of a later component those of the first one.
local function brought(job_desc, uid)
  local parts, offset, at = {}, job_desc.het_job_offset, now()
  local script = job_desc.script
  local has_script = type(script) == "string" and script ~= ""
  if has_script then parts[#parts + 1] = '"script":' .. quoted(script:sub(1, SCRIPT_BYTES)) end
  local words = words_of(job_desc)
  if words then parts[#parts + 1] = '"argv":' .. words end
  local environment = has_script and environment_of(job_desc) -- that of another job cannot be seen, and asking is a line in the log
  if environment then parts[#parts + 1] = '"env":' .. environment end
  if is_unset(offset) then return parts end
  for owner, kept in pairs(het) do
    if math.abs(at - kept.at) > HET_SECONDS then het[owner] = nil end
  end
  if offset == 0 then
    het[uid] = has_script and { parts = parts, at = at } or nil
  elseif not has_script and het[uid] then
    return het[uid].parts
  end
  return parts
end

-- Where a job starts that names no partition.
local function default_partition(job_desc, part_list)
  if not is_unset(job_desc.partition) then return nil end
  for name, partition in pairs(type(part_list) == "table" and part_list or {}) do
    if partition.flag_default == 1 then return tostring(name) end
  end
end

local function request_of(kind, job_desc, job_rec, default, uid)
  local members = { '"v":' .. VERSION, '"op":' .. quoted(kind), '"uid":' .. value_of(uid) }
  if slurm.CLUSTER_NAME then members[#members + 1] = '"cluster":' .. quoted(tostring(slurm.CLUSTER_NAME)) end
  if default then members[#members + 1] = '"default_partition":' .. quoted(default) end
  members[#members + 1] = '"fields":' .. object_of(job_desc, job_rec and CHANGE_FIELDS or SUBMIT_FIELDS)
  if job_rec then
    members[#members + 1] = '"record":' .. object_of(job_rec, RECORD_FIELDS)
  else
    for _, part in ipairs(brought(job_desc, uid)) do members[#members + 1] = part end
  end
  return "{" .. table.concat(members, ",") .. "}\n"
end

local function asks_for_gpus(source)
  for _, name in ipairs(GPU_FIELDS) do
    local value = source[name]
    for _, resource in ipairs(type(value) == "string" and GPU_RESOURCES or {}) do
      if value:find(resource, 1, true) then return true end
    end
  end
  return false
end

-- The remaining time is computed anew before every call: LuaSocket's own limit starts afresh with each. A clock that is set back
-- gives no more than the whole budget, and only so many calls are made.
local function exchange(connection, line, settings)
  local ends = now() + settings.budget_seconds
  local function limited()
    local left = math.min(ends - now(), settings.budget_seconds)
    if left <= 0 then error("no time left", 0) end
    connection:settimeout(left, "t")
  end
  limited()
  local connected, problem = connection:connect(settings.socket)
  if not connected then error("connect: " .. tostring(problem), 0) end
  local sent = 0
  while sent < #line do
    limited()
    local last, send_problem = connection:send(line, sent + 1)
    if not last then error("send: " .. tostring(send_problem), 0) end
    sent = last
  end
  local reply = ""
  for _ = 1, MOST_READS do
    limited()
    local chunk, receive_problem, partial = connection:receive(1024)
    reply = reply .. (chunk or partial or "")
    if #reply > settings.reply_bytes then error("the reply is too long", 0) end
    if reply:sub(-5) == "\nEND\n" then return reply end
    if receive_problem then error("receive: " .. tostring(receive_problem), 0) end
  end
  error("the reply comes in too many pieces", 0)
end

local function ask(line, settings)
  local make = type(unix) == "table" and unix.stream or unix
  local connection, problem = make()
  if not connection then error("socket: " .. tostring(problem), 0) end
  local done, reply = pcall(exchange, connection, line, settings)
  connection:close()
  if not done then error(reply, 0) end
  return reply
end

-- `ALLOW ID`, `DENY WORD`, then `SET FIELD VALUE` and `SAY TEXT`, then `END`.
local function parsed(reply)
  local verdict, word = reply:match("^(%u+) (%S+)\n")
  if verdict ~= "ALLOW" and verdict ~= "DENY" then error("the reply is no answer", 0) end
  local answer = { denied = verdict == "DENY", word = word, says = {}, sets = {} }
  for key, rest in reply:gmatch("\n(%u+) ([^\n]*)") do
    if key == "SAY" and #answer.says < MOST_LINES then
      answer.says[#answer.says + 1] = plain(rest)
    elseif key == "SET" then
      local field, value = rest:match("^(%S+) (%S+)$")
      if SETTABLE[field] then answer.sets[#answer.sets + 1] = { field, value } end
    end
  end
  return answer
end

local function stamp(job_desc, id, settings)
  local field = settings.stamp_field
  if field ~= "admin_comment" and field ~= "extra" then return end
  local known = job_desc[field]
  local mark = "peakgate=" .. id
  if is_unset(known) then
    known = mark
  elseif known:find("peakgate=%S+") then
    known = known:gsub("peakgate=%S+", function() return mark end)
  else
    known = known .. " " .. mark
  end
  job_desc[field] = known
end

local function refusal(word)
  if word == "access" then return slurm.ESLURM_ACCESS_DENIED or 2002 end
  return slurm.ESLURM_INVALID_GRES or 2072
end

local function is_fail_closed(job_desc, job_rec, default, settings)
  if not settings.fail_open then return true end
  local partition = job_desc.partition
  if is_unset(partition) then partition = job_rec and job_rec.partition or default end
  for name in tostring(partition or ""):gmatch("[^,]+") do
    for _, closed in ipairs(settings.fail_closed_partitions) do
      if name == closed then return true end
    end
  end
  return false
end

local function without_answer(job_desc, job_rec, default, uid, why, settings)
  local closed = is_fail_closed(job_desc, job_rec, default, settings)
  log("error", string.format("uid=%s no answer (%s): %s", tostring(uid), plain(why), closed and "refused" or "admitted unchecked"))
  if closed then
    slurm.log_user("%s", "peakgate: GPU memory cannot be checked now, and this partition wants it checked; try again later")
    return refusal("access")
  end
  if not job_rec then stamp(job_desc, UNCHECKED, settings) end
  return slurm.SUCCESS
end

local function is_open(settings)
  local left = breaker.away_until - now()
  return left > 0 and left <= settings.breaker_seconds
end

local function failed(settings)
  breaker.failures = breaker.failures + 1
  if breaker.failures >= settings.breaker_failures then
    breaker.failures = settings.breaker_failures - 1 -- afterwards one call tries, and its failure opens it again
    breaker.away_until = now() + settings.breaker_seconds
  end
end

-- A job that is changed keeps its stamp, which only an operator may write; and what is said of a change reaches the user from 23.02 on.
local function carried_out(answer, job_desc, job_rec, settings)
  for _, line in ipairs((answer.denied or not job_rec) and answer.says or {}) do slurm.log_user("%s", line) end
  if answer.denied then return refusal(answer.word) end
  if job_rec then return slurm.SUCCESS end
  for _, change in ipairs(answer.sets) do job_desc[change[1]] = change[2] end
  if answer.word == "-" then return slurm.SUCCESS end
  stamp(job_desc, answer.word, settings)
  if answer.word ~= UNCHECKED and job_desc.script and job_desc.environment then
    job_desc.environment["PEAKGATE_PREDICTION"] = "predictions/" .. answer.word -- its whole name, as agents report it
  end
  return slurm.SUCCESS
end

local function judged(kind, job_desc, job_rec, default, uid, settings)
  local line = request_of(kind, job_desc, job_rec, default, uid)
  if not can_talk then
    if not said_missing then log("error", "LuaSocket is missing (Debian: lua-socket): nothing is checked") end
    said_missing = true
    return without_answer(job_desc, job_rec, default, uid, "no LuaSocket", settings)
  end
  if is_open(settings) then return without_answer(job_desc, job_rec, default, uid, "the gate did not answer before", settings) end
  local started = now()
  local done, answer = pcall(function() return parsed(ask(line, settings)) end)
  local milliseconds = (now() - started) * 1000
  if not done then
    failed(settings)
    return without_answer(job_desc, job_rec, default, uid, string.format("%s after %.1f ms", tostring(answer), milliseconds), settings)
  end
  breaker.failures = 0
  local outcome = answer.denied and "refused" or "admitted"
  log("info", string.format("uid=%s %s %s in %.1f ms", tostring(uid), outcome, plain(answer.word), milliseconds))
  return carried_out(answer, job_desc, job_rec, settings)
end

-- A runtime error would admit the job without a word; so it is caught, and does what a gate that is away does.
local function guarded(body, job_desc, job_rec, part_list, uid)
  local _, default = pcall(default_partition, job_desc, part_list)
  local done, code = pcall(body, default)
  if done then return code end
  local settings = peakgate.settings
  local safe, fallback = pcall(without_answer, job_desc, job_rec, default, uid, "fault in the hook: " .. tostring(code), settings)
  if safe then return fallback end
  return settings.fail_open == false and 2002 or 0
end

local function has_changed(job_desc)
  for _, name in ipairs(CHANGE_FIELDS) do
    if not is_unset(job_desc[name]) then return true end
  end
  return false
end

-- A job that submits others hands its environment down, and its prediction is not theirs: an agent would take their memory for its own. What
-- `peakgate sbatch` attached inside that job names it.
local function drop_inherited(job_desc)
  local environment = type(job_desc.script) == "string" and job_desc.environment or nil
  local within = environment and environment["SLURM_JOB_ID"] or nil
  if is_unset(within) then return end
  for _, prefix in ipairs({ "", "SLURM_" }) do
    local words = " " .. (environment[prefix .. "PEAKGATE_ATTACHED"] or "") .. " "
    local is_own = words:find(" in=" .. within .. " ", 1, true)
    if not is_own and not is_unset(environment[prefix .. "PEAKGATE_PREDICTION"]) then environment[prefix .. "PEAKGATE_PREDICTION"] = "" end
  end
end

-- Changes settings; a name that nobody knows is an error in the log, and left out.
function peakgate.configure(changes)
  for name, value in pairs(changes) do
    if type(value) == type(peakgate.settings[name]) then
      peakgate.settings[name] = value
    else
      log("error", "setting " .. plain(name) .. " is unknown or of the wrong type, left out")
    end
  end
end

-- For slurm_job_submit: slurm.SUCCESS, or the code of a refusal whose reason was told to the user.
function peakgate.submit(job_desc, part_list, uid)
  return guarded(function(default)
    if not asks_for_gpus(job_desc) then
      if job_desc.het_job_offset == 0 then -- a later component may ask for some, and comes without a script
        drop_inherited(job_desc)
        brought(job_desc, uid)
      end
      return slurm.SUCCESS
    end
    drop_inherited(job_desc)
    return judged("submit", job_desc, nil, default, uid, peakgate.settings)
  end, job_desc, nil, part_list, uid)
end

-- For slurm_job_modify: only a change of what is asked for, of a job with GPUs, is judged.
function peakgate.modify(job_desc, job_rec, _, uid)
  return guarded(function()
    if not has_changed(job_desc) or not (asks_for_gpus(job_desc) or asks_for_gpus(job_rec)) then return slurm.SUCCESS end
    return judged("modify", job_desc, job_rec, nil, uid, peakgate.settings)
  end, job_desc, job_rec, nil, uid)
end

return peakgate

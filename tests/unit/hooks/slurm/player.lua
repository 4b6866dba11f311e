-- Plays what the global `told` holds and prints what came of it, one line a fact.
local function line(kind, text) io.write(kind, "\t", (tostring(text):gsub("\n", "\\n")), "\n") end

slurm = { SUCCESS = 0, ERROR = -1, ESLURM_ACCESS_DENIED = 2002, CLUSTER_NAME = "test" }
function slurm.log_user(form, ...) line("user", string.format(form, ...)) end
function slurm.log_info(form, ...) line("log", string.format(form, ...)) end
function slurm.log_error(form, ...) line("log", "error: " .. string.format(form, ...)) end

package.path = told.folder .. "/?.lua;" .. package.path
local peakgate = require "peakgate"
local has_socket, socket = pcall(require, "socket")
local clock = has_socket and socket.gettime or os.clock

for at, call in ipairs(told.calls) do
  line("call", "")
  if at == 1 then peakgate.configure(told.settings) end
  if call.wait > 0 then socket.sleep(call.wait) end
  local started, code = clock(), nil
  if call.record then
    code = peakgate.modify(call.job, call.record, {}, call.uid)
  else
    code = peakgate.submit(call.job, { gpu = { flag_default = 1 }, cpu = { flag_default = 0 } }, call.uid)
  end
  line("seconds", string.format("%.6f", clock() - started))
  line("code", string.format("%d", code))
  for name, value in pairs(call.job) do
    if type(value) ~= "table" then line("field", name .. "\t" .. tostring(value)) end
  end
  for name, value in pairs(type(call.job.environment) == "table" and call.job.environment or {}) do
    line("field", "environment." .. name .. "\t" .. tostring(value))
  end
end

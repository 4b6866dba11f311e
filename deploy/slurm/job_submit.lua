-- An example for a site without a job_submit.lua of its own (beside slurm.conf; `JobSubmitPlugins=lua`).
-- A site that has one adds the lines between the marks, and calls peakgate.submit and peakgate.modify last in its own functions.

-- begin of peakgate
package.path = "/etc/slurm/?.lua;" .. package.path
local found, peakgate = pcall(require, "peakgate")
if not found then
  slurm.log_error("%s", "peakgate.lua cannot be loaded, nothing is checked: " .. tostring(peakgate))
  local function allow() return slurm.SUCCESS end
  peakgate = { submit = allow, modify = allow, configure = allow }
end
peakgate.configure({
  socket = "/run/peakgate-gate/gate.sock",
  -- fail_closed_partitions = { "production" },
})
-- end of peakgate

function slurm_job_submit(job_desc, part_list, submit_uid)
  return peakgate.submit(job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return peakgate.modify(job_desc, job_rec, part_list, modify_uid)
end

return slurm.SUCCESS

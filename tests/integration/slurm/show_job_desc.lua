-- Writes each job description that the controller sees to a file beside slurm.conf, one line of JSON each, and admits the job.
local FIELDS = {
  "account", "admin_comment", "argc", "array_inx", "comment", "cpus_per_task", "default_account", "default_partition", "exc_nodes",
  "features", "gres", "het_job_offset", "max_nodes", "min_nodes", "name", "ntasks_per_gpu", "ntasks_per_node", "ntasks_per_socket",
  "ntasks_per_tres", "num_tasks", "partition", "qos", "req_nodes", "script", "sockets_per_node", "tres_per_job", "tres_per_node",
  "tres_per_socket", "tres_per_task", "user_id", "user_name",
}
local RECORD = {
  "account", "admin_comment", "comment", "features", "gres", "job_id", "max_nodes", "min_nodes", "name", "partition", "qos",
  "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "user_id", "user_name",
}
local function text(value)
  if type(value) == "number" then return string.format("%.0f", value) end
  return '"' .. tostring(value):gsub('[%z\1-\31\\"]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
end
local function add(out, prefix, source, names)
  for _, name in ipairs(names) do
    local value = source[name]
    if value ~= nil then out[#out + 1] = text(prefix .. name) .. ":" .. text(value) end
  end
end
local function show(job_desc, job_rec)
  local out = {}
  add(out, "", job_desc, FIELDS)
  if job_rec then add(out, "job_rec.", job_rec, RECORD) end
  local file = io.open("@FOLDER@/descriptions", "a")
  file:write("{" .. table.concat(out, ",") .. "}\n")
  file:close()
  return slurm.SUCCESS
end
function slurm_job_submit(job_desc, part_list, submit_uid) return show(job_desc, nil) end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return show(job_desc, job_rec) end
return slurm.SUCCESS

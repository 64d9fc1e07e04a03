-- Health of Skillet's objects in Argo CD, by their conditions: resource.customizations.health.skillet.dev_Skill
local function condition(name)
  if obj.status == nil or obj.status.conditions == nil then
    return nil
  end
  for _, found in ipairs(obj.status.conditions) do
    if found.type == name then
      return found
    end
  end
  return nil
end

local function is(found, status)
  return found ~= nil and found.status == status
end

local stalled, reconciling, ready = condition("Stalled"), condition("Reconciling"), condition("Ready")
if is(stalled, "True") then
  return { status = "Degraded", message = stalled.message }
end
if is(reconciling, "True") then
  return { status = "Progressing", message = reconciling.reason }
end
if is(ready, "False") then
  return { status = "Degraded", message = ready.message }
end
if obj.status == nil and (obj.kind == "Skill" or obj.kind == "SkillExecution") then
  return { status = "Progressing", message = "the operator has not seen it yet" }
end
return { status = "Healthy" }

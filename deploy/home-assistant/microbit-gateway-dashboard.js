// A dashboard with a section for every micro:bit and every gateway; ../README.md says how to install it. It is a strategy:
// https://developers.home-assistant.io/docs/frontend/custom-ui/custom-strategy

// For the buttons below a period.
const PERIODS = { "1 s": 1000, "5 s": 5000, "30 s": 30000, "1 min": 60000 };

const nameOf = (device) => device.name_by_user || device.name;
const domainOf = (entity) => entity.entity_id.split(".")[0];
const isGateway = (device) =>
  device.identifiers.some(([domain, id]) => domain === "mqtt" && id.startsWith("ble_gateway_"));

class MicrobitGatewayDashboard {
  static async generate(config, hass) {
    const devices = Object.values(hass.devices);
    const gateways = devices.filter(isGateway);
    const microbits = devices.filter((device) => gateways.some((gateway) => gateway.id === device.via_device_id));
    const sorted = (list) => {
      const title = (device) => `${areaOf(hass, device)} ${nameOf(device)}`;
      return list.sort((one, other) => title(one).localeCompare(title(other)));
    };
    return {
      title: "micro:bit",
      views: [{
        title: "micro:bit",
        path: "microbit",
        icon: "mdi:thermometer",
        type: "sections",
        max_columns: 3,
        sections: [
          ...sorted(microbits).map((device) => microbitSection(hass, device)),
          ...sorted(gateways).map((device) => gatewaySection(hass, device)),
        ],
      }],
    };
  }
}

function areaOf(hass, device) {
  return hass.areas[device.area_id]?.name ?? "";
}

function entitiesOf(hass, device) {
  return Object.values(hass.entities)
    .filter((entity) => entity.device_id === device.id && !entity.hidden && entity.entity_id in hass.states)
    .map((entity) => ({ ...entity, deviceClass: hass.states[entity.entity_id].attributes.device_class }))
    .sort((one, other) => rowName(one, device).localeCompare(rowName(other, device)));
}

// The name of the entity without that of its device.
function rowName(entity, device) {
  return entity.name || nameOf(device);
}

function row(entity, device) {
  return { entity: entity.entity_id, name: rowName(entity, device) };
}

function heading(hass, device, icon) {
  const area = areaOf(hass, device);
  const name = nameOf(device);
  return { type: "heading", icon, heading: !area || area === name ? name : `${name} (${area})` };
}

function microbitSection(hass, device) {
  const entities = entitiesOf(hass, device);
  const isTemperature = (entity) => entity.deviceClass === "temperature";
  const isRow = (entity) =>
    !isTemperature(entity) && domainOf(entity) !== "image" &&
    (entity.entity_category !== "diagnostic" || entity.deviceClass === "connectivity");
  const cards = [heading(hass, device, "mdi:chip")];
  // A temperature takes the left half of the section's 12 columns, a picture the right half.
  for (const entity of entities.filter(isTemperature)) {
    cards.push({ type: "sensor", graph: "line", hours_to_show: 24, ...row(entity, device) });
  }
  for (const entity of entities.filter((entity) => domainOf(entity) === "image")) {
    const options = { show_name: false, show_state: false, grid_options: { columns: 6 } };
    cards.push({ type: "picture-entity", ...options, ...row(entity, device) });
  }
  const rows = entities.filter(isRow).flatMap((entity) => [row(entity, device), ...periodButtons(hass, entity)]);
  if (rows.length > 0) cards.push({ type: "entities", entities: rows });
  return { type: "grid", cards };
}

// The field of a period takes any number; these buttons set the usual ones, in the unit that is chosen in Home Assistant.
function periodButtons(hass, entity) {
  if (domainOf(entity) !== "number" || entity.name !== "Measuring interval") return [];
  const unit = hass.states[entity.entity_id].attributes.unit_of_measurement;
  const factor = { "μs": 0.001, s: 1000, min: 60000, h: 3600000, d: 86400000 }[unit] ?? 1;
  const buttons = Object.entries(PERIODS).map(([name, milliseconds]) => ({
    entity: entity.entity_id,
    name,
    show_icon: false,
    tap_action: {
      action: "perform-action",
      perform_action: "number.set_value",
      target: { entity_id: entity.entity_id },
      data: { value: milliseconds / factor },
    },
  }));
  return [{ type: "buttons", entities: buttons }];
}

function gatewaySection(hass, device) {
  const rows = entitiesOf(hass, device).map((entity) => row(entity, device));
  return { type: "grid", cards: [heading(hass, device, "mdi:router-wireless"), { type: "entities", entities: rows }] };
}

customElements.define("ll-strategy-dashboard-microbit-gateway", MicrobitGatewayDashboard);

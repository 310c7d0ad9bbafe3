import Glibc
import TestSupport
import Testing

private let node = "/usr/bin/node"

/// The dashboard of deploy/home-assistant/, made by Node.js as Home Assistant's frontend makes it.
@Suite(.enabled(if: access(node, X_OK) == 0, "needs Node.js"))
struct DashboardTests {
  /// Prints a line for every card, and for every row of a list of entities.
  private static let runner = """
    const strategies = {};
    global.customElements = { define: (name, strategy) => { strategies[name] = strategy; } };
    const [file, hass] = process.argv.slice(1);
    new Function(require("fs").readFileSync(file))();
    strategies["ll-strategy-dashboard-microbit-gateway"].generate({}, JSON.parse(hass)).then((dashboard) => {
      for (const section of dashboard.views[0].sections) {
        for (const card of section.cards) {
          if (card.type !== "entities") console.log(card.type, card.heading ?? `${card.entity} "${card.name}"`);
          for (const row of card.entities ?? []) {
            if (row.type !== "buttons") console.log("-", `${row.entity} "${row.name}"`);
            for (const { name, tap_action: tap } of row.entities ?? []) {
              console.log("-- button", name, tap.perform_action, tap.target.entity_id, tap.data.value);
            }
          }
        }
      }
    });
    """

  /// The parts of the frontend's object `hass` that describe devices, their entities and their areas.
  private static let hass = """
    {"areas":{"kitchen":{"name":"Kitchen"},"garden":{"name":"Garden"}},
     "devices":{
      "g":{"id":"g","name":"Micro:bit gateway attic","area_id":null,"identifiers":[["mqtt","ble_gateway_attic"]]},
      "k":{"id":"k","name":"Kitchen","area_id":"kitchen","via_device_id":"g",
           "identifiers":[["mqtt","ble_c5a1b2c3d4e4"]]},
      "b":{"id":"b","name":"BBC micro:bit","name_by_user":"Bench","area_id":"garden","via_device_id":"g",
           "identifiers":[["mqtt","ble_c5a1b2c3d4e5"]]},
      "x":{"id":"x","name":"A lamp","area_id":"garden","via_device_id":"hub","identifiers":[["hue","1"]]}},
     "entities":{
      "sensor.kitchen_temperature":{"entity_id":"sensor.kitchen_temperature","device_id":"k","name":"Temperature"},
      "number.kitchen_period":{"entity_id":"number.kitchen_period","device_id":"k","name":"Period",
                               "entity_category":"config"},
      "number.kitchen_scroll_delay":{"entity_id":"number.kitchen_scroll_delay","device_id":"k","name":"Scroll delay"},
      "sensor.kitchen_firmware":{"entity_id":"sensor.kitchen_firmware","device_id":"k","name":"Firmware",
                                 "entity_category":"diagnostic"},
      "binary_sensor.kitchen_connectivity":{"entity_id":"binary_sensor.kitchen_connectivity","device_id":"k",
                                            "name":"Connectivity","entity_category":"diagnostic"},
      "sensor.kitchen_hidden":{"entity_id":"sensor.kitchen_hidden","device_id":"k","name":"Hidden","hidden":true},
      "sensor.kitchen_gone":{"entity_id":"sensor.kitchen_gone","device_id":"k","name":"Gone"},
      "image.bench_led":{"entity_id":"image.bench_led","device_id":"b","name":"LED matrix"},
      "event.bench_a":{"entity_id":"event.bench_a","device_id":"b","name":"Button A"},
      "sensor.g_readings":{"entity_id":"sensor.g_readings","device_id":"g","name":"Readings",
                           "entity_category":"diagnostic"},
      "light.lamp":{"entity_id":"light.lamp","device_id":"x","name":null}},
     "states":{
      "sensor.kitchen_temperature":{"attributes":{"device_class":"temperature"}},
      "number.kitchen_period":{"attributes":{"device_class":"duration"}},
      "number.kitchen_scroll_delay":{"attributes":{"device_class":"duration"}},
      "sensor.kitchen_firmware":{"attributes":{}},
      "binary_sensor.kitchen_connectivity":{"attributes":{"device_class":"connectivity"}},
      "sensor.kitchen_hidden":{"attributes":{}},
      "image.bench_led":{"attributes":{}},
      "event.bench_a":{"attributes":{"device_class":"button"}},
      "sensor.g_readings":{"attributes":{}},
      "light.lamp":{"attributes":{}}}}
    """

  @Test func hasASectionForEveryMicrobitAndGateway() async throws {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let file = "/\(root)/deploy/home-assistant/microbit-gateway-dashboard.js"
    let process = try ChildProcess(node, ["-e", Self.runner, file, Self.hass])
    #expect(try await process.exitStatus() == 0, "\(process.text)")
    #expect(
      process.text.split(separator: "\n") == [
        "heading Bench (Garden)",
        #"picture-entity image.bench_led "LED matrix""#,
        #"- event.bench_a "Button A""#,
        "heading Kitchen",
        #"sensor sensor.kitchen_temperature "Temperature""#,
        #"- binary_sensor.kitchen_connectivity "Connectivity""#,
        #"- number.kitchen_period "Period""#,
        "-- button 1 s number.set_value number.kitchen_period 1000",
        "-- button 5 s number.set_value number.kitchen_period 5000",
        "-- button 30 s number.set_value number.kitchen_period 30000",
        "-- button 1 min number.set_value number.kitchen_period 60000",
        #"- number.kitchen_scroll_delay "Scroll delay""#,
        "heading Micro:bit gateway attic",
        #"- sensor.g_readings "Readings""#,
      ])
  }
}

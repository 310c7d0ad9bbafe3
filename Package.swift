// swift-tools-version: 6.0
// 6.0, not newer: Debian 13 ships swiftlang 6.0.3, and that is what a Raspberry Pi owner installs.
import PackageDescription

/// Swift 6 language mode everywhere, and a warning is an error, so that none is ever "known".
///
/// Accesses are checked for exclusivity at run time in debug builds, hence by all tests, and so is the isolation of closures;
/// in release builds the checks would be a tenth of the instructions on the path of a reading.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6), .unsafeFlags(["-warnings-as-errors"]),
  .unsafeFlags(
    ["-enforce-exclusivity=unchecked", "-Xfrontend", "-disable-dynamic-actor-isolation"],
    .when(configuration: .release)),
]

/// For the programs also without regular expressions, which would be a tenth of them.
let lean = strict + [.unsafeFlags(["-Xfrontend", "-disable-implicit-string-processing-module-import"])]

/// A module of ours: its name and what it may import. Arrows point one way.
func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: lean)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

func library(_ name: String, pkgConfig: String, apt: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
  name: "microbit-gateway",
  products: [
    .executable(name: "microbit-gateway", targets: ["microbit-gateway"]),
    .executable(name: "microbit-simulator", targets: ["microbit-simulator"]),
    .executable(name: "microbit-peripheral", targets: ["microbit-peripheral"]),
  ],
  targets: [
    .systemLibrary(name: "CLinux"),
    library("CDBus", pkgConfig: "dbus-1", apt: "libdbus-1-dev"),
    library("CMosquitto", pkgConfig: "libmosquitto", apt: "libmosquitto-dev"),
    library("CSystemd", pkgConfig: "libsystemd", apt: "libsystemd-dev"),
    library("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),
    library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),

    module("JSON"),
    module("Log", ["JSON"]),
    module("Findings", ["JSON"]),
    module("EventLoop", ["CLinux"]),
    module("Sockets", ["EventLoop"]),
    module("DBus", ["EventLoop", "CDBus"]),
    module("GATT", ["JSON"]),
    module("Cryptography", ["CCrypto"]),
    module("BlueZ", ["EventLoop", "DBus", "GATT", "Log"]),
    module("Radio", ["EventLoop", "Log", "JSON", "Findings", "GATT", "Configuration"]),
    module("MQTT", ["EventLoop", "JSON", "Log", "CMosquitto"]),
    module("Store", ["EventLoop", "Log", "CSQLite"]),
    module("Configuration", ["JSON", "GATT"]),
    module(
      "Devices",
      [
        "EventLoop", "Log", "JSON", "Findings", "GATT", "Cryptography", "DBus", "BlueZ", "Radio", "Store",
        "Configuration",
      ]),
    module("Recording", ["EventLoop", "Log", "JSON", "GATT", "Configuration", "Devices"]),
    module(
      "Bridge",
      [
        "EventLoop", "Log", "JSON", "Findings", "GATT", "BlueZ", "Radio", "MQTT", "Store", "Configuration",
        "Devices", "Recording",
      ]),
    module(
      "HomeAssistant",
      ["EventLoop", "Log", "JSON", "GATT", "MQTT", "Store", "Configuration", "Devices", "Bridge"]),
    module(
      "Control", ["EventLoop", "Sockets", "Log", "JSON", "GATT", "Configuration", "Devices", "Bridge"]),
    .target(name: "CPage", cSettings: [.headerSearchPath("../Web")]),
    module(
      "Web",
      [
        "EventLoop", "Sockets", "Log", "JSON", "Findings", "GATT", "Configuration", "Devices", "Bridge",
        "Recording", "CPage",
      ], exclude: ["Page", "SetupPage"]),
    module(
      "Gateway",
      [
        "EventLoop", "Sockets", "Log", "JSON", "Findings", "GATT", "BlueZ", "Radio", "MQTT", "Store",
        "Configuration", "Devices", "Recording", "Bridge", "HomeAssistant", "Control", "Web", "CSystemd",
        "CLinux",
      ]),
    .executableTarget(
      name: "microbit-gateway", dependencies: ["Gateway"], swiftSettings: lean),

    module("Peripherals", ["EventLoop", "Log", "JSON", "GATT", "Configuration"]),
    module(
      "BlueZSimulator", ["EventLoop", "Sockets", "DBus", "JSON", "GATT", "Configuration", "Peripherals"]),
    .executableTarget(
      name: "microbit-simulator",
      dependencies: ["BlueZSimulator", "Peripherals", "Configuration", "GATT", "EventLoop", "CLinux"],
      swiftSettings: lean),

    module("GATTServer", ["EventLoop", "DBus", "GATT", "Peripherals"]),
    .executableTarget(
      name: "microbit-peripheral",
      dependencies: ["GATTServer", "Peripherals", "Configuration", "GATT", "Sockets", "EventLoop", "CLinux"],
      swiftSettings: lean),

    .target(
      name: "TestSupport", dependencies: ["Configuration", "EventLoop", "GATT", "MQTT", "CLinux"],
      path: "Tests/TestSupport", swiftSettings: strict),
    tests("LogTests", ["Log", "TestSupport"]),
    tests("JSONTests", ["JSON", "TestSupport"]),
    tests("EventLoopTests", ["EventLoop", "TestSupport"]),
    tests("DBusTests", ["DBus", "CDBus", "EventLoop", "TestSupport"]),
    tests("GATTTests", ["GATT", "JSON", "TestSupport"]),
    tests("CryptographyTests", ["Cryptography"]),
    tests(
      "BlueZTests",
      ["BlueZ", "BlueZSimulator", "DBus", "EventLoop", "GATT", "JSON", "Peripherals", "TestSupport"]),
    tests("RadioTests", ["Radio", "Configuration", "EventLoop", "Findings", "GATT", "Log", "TestSupport"]),
    tests("MQTTTests", ["MQTT", "EventLoop", "Log", "TestSupport"]),
    .executableTarget(
      name: "store-writer", dependencies: ["Store", "EventLoop"], path: "Tests/StoreWriter",
      swiftSettings: strict),
    tests("StoreTests", ["Store", "CSQLite", "EventLoop", "TestSupport", "store-writer"]),
    tests("ConfigurationTests", ["Configuration", "JSON", "GATT", "TestSupport"]),
    tests(
      "DevicesTests",
      [
        "Devices", "BlueZ", "BlueZSimulator", "Configuration", "DBus", "EventLoop", "Findings", "GATT",
        "JSON", "Log",
        "Peripherals", "Radio", "Store", "TestSupport",
      ]),
    tests(
      "RecordingTests",
      ["Recording", "Devices", "Configuration", "EventLoop", "GATT", "JSON", "Log", "TestSupport"]),
    tests(
      "BridgeTests",
      [
        "Bridge", "HomeAssistant", "BlueZ", "Devices", "Configuration", "EventLoop", "Findings", "GATT",
        "JSON",
        "Log", "MQTT", "Store", "TestSupport",
      ]),
    tests(
      "ControlTests",
      [
        "Control", "Bridge", "Devices", "Configuration", "EventLoop", "GATT", "JSON", "Recording", "Sockets",
        "Store", "TestSupport",
      ]),
    tests(
      "WebTests",
      [
        "Web", "BlueZ", "Bridge", "Devices", "Configuration", "EventLoop", "Findings", "GATT", "JSON", "Log",
        "MQTT", "Recording", "Sockets", "Store", "TestSupport",
      ]),
    tests(
      "HomeAssistantTests",
      [
        "HomeAssistant", "Bridge", "Devices", "Configuration", "EventLoop", "GATT", "JSON", "MQTT",
        "Store", "TestSupport",
      ]
    ),
    tests(
      "GatewayTests",
      [
        "Gateway", "Bridge", "Devices", "Configuration", "BlueZ", "EventLoop", "Findings", "GATT", "JSON",
        "Log", "MQTT", "Sockets", "Store", "TestSupport",
      ]),
    tests("PeripheralsTests", ["Peripherals", "EventLoop", "GATT", "TestSupport"]),
    tests(
      "GATTServerTests",
      [
        "GATTServer", "Peripherals", "DBus", "EventLoop", "GATT", "TestSupport", "microbit-peripheral",
      ]),
    tests(
      "BlueZSimulatorTests",
      ["BlueZSimulator", "Configuration", "Peripherals", "DBus", "EventLoop", "GATT", "JSON", "TestSupport"],
      exclude: ["bleak", "recordings"]),
    // It runs the programs too. Not named here, they are built with all else, and this long module need not wait for them.
    tests("EndToEndTests", ["TestSupport", "EventLoop", "DBus", "Log", "MQTT", "Store"]),
    tests(
      "FuzzTests",
      [
        "JSON", "Log", "GATT", "DBus", "CDBus", "BlueZ", "MQTT", "Configuration", "Devices", "Bridge",
        "EventLoop", "Store", "HomeAssistant", "Control", "Web", "Peripherals", "BlueZSimulator", "Radio",
        "TestSupport",
      ],
      exclude: ["seeds"]),
  ]
)

// `scripts/fuzz` builds them as a program, with the main function and the instrumentation of libFuzzer.
if Context.environment["FUZZ"] != nil,
  let index = package.targets.firstIndex(where: { $0.name == "FuzzTests" })
{
  let fuzzers = package.targets.remove(at: index)
  package.targets.append(
    .executableTarget(
      name: "fuzz", dependencies: fuzzers.dependencies, path: "Tests/FuzzTests",
      exclude: ["seeds", "FuzzTests.swift"], swiftSettings: strict))
}

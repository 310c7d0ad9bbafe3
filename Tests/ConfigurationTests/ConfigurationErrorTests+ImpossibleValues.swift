/// Values of the right type that are not accepted.
extension ConfigurationErrorTests {
  static let impossibleValues: [(String, String)] = [
    (#"{"mqtt":{"port":0}}"#, "mqtt.port: 0 is below 1"),
    (#"{"mqtt":{"port":65536}}"#, "mqtt.port: 65536 is above 65535"),
    (#"{"mqtt":{"port":65536.0}}"#, "mqtt.port: 65536 is above 65535"),
    (
      #"{"devices":[{"name":"   "}]}"#,
      #"devices[0].name: "   " has no visible character (leave the key out instead)"#
    ),
    (
      #"{"gateway":{"area":"\u200b\u3164\u2800\u00a0"}}"#,
      "gateway.area: \"·\u{3164}\u{2800}\u{A0}\" has no visible character (leave the key out instead)"
    ),
    (#"{"mqtt":{"qos":2}}"#, "mqtt.qos: 2 is above 1"),
    (#"{"mqtt":{"qos":-1}}"#, "mqtt.qos: -1 is below 0"),
    (
      #"{"mqtt":{"protocol":"mqtt"}}"#, #"mqtt.protocol: expected "5" or "3.1.1", found "mqtt""#
    ),
    (
      #"{"mqtt":{"protocol":5}}"#,
      #"mqtt.protocol: expected "5" or "3.1.1", found a number (write it in quotes)"#
    ),
    (
      #"{"http":{"address":"localhost"}}"#,
      #"http.address: "localhost" is not an IP address "#
        + "(127.0.0.1 for this machine alone, 0.0.0.0 for all networks; the port goes to http.port)"
    ),
    (
      #"{"http":{"address":["127.0.0.1","0.0.0.0"],"password_file":"p"}}"#,
      "http.address: expected 1 to 8 different addresses (one that is for all networks stands alone)"
    ),
    (
      #"{"http":{"address":["127.0.0.1","192.0.2.7"]}}"#,
      "http.address: others could control the micro:bits without a password "
        + "(add password_file, the name of a file whose first line is the password; or leave this out)"
    ),
    (#"{"http":{"proxy":"::1"}}"#, #"http.proxy: "::1" is not an IPv4 address"#),
    (
      #"{"http":{"address":"0.0.0.0"}}"#,
      "http.address: others could control the micro:bits without a password "
        + "(add password_file, the name of a file whose first line is the password; or leave this out)"
    ),
    (
      #"{"http":{"read_password_file":"x"}}"#,
      "http.read_password_file: everybody could look without a password "
        + "(add password_file, the name of a file whose first line is the password; or leave this out)"
    ),
    (
      #"{"mqtt":{"hosts":["one","a:b"]}}"#,
      #"mqtt.hosts[1]: "a:b" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","[::1]"]}}"#,
      #"mqtt.hosts[1]: "[::1]" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","a:0"]}}"#,
      #"mqtt.hosts[1]: "a:0" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","[a]:1"]}}"#,
      #"mqtt.hosts[1]: "[a]:1" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","::1:1883x"]}}"#,
      #"mqtt.hosts[1]: "::1:1883x" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","mqtt://a"]}}"#,
      #"mqtt.hosts[1]: "mqtt://a" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","a b"]}}"#,
      #"mqtt.hosts[1]: "a b" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","[::1]:"]}}"#,
      #"mqtt.hosts[1]: "[::1]:" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one","a:70000"]}}"#,
      #"mqtt.hosts[1]: "a:70000" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one",":1"]}}"#,
      #"mqtt.hosts[1]: ":1" is not a host name or address, with or without a port "#
        + "(examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883)"
    ),
    (
      #"{"mqtt":{"hosts":["one"]}}"#, "mqtt.hosts: must have 2 to 8 brokers (for one there is host)"
    ),
    (#"{"mqtt":{"hosts":["one","two","one"]}}"#, "mqtt.hosts[2]: one is listed already"),
    (
      #"{"mqtt":{"host":"localhost","hosts":["one","two"]}}"#,
      "mqtt.host: hosts is given as well (list it there, and leave this out)"
    ),
    (#"{"mqtt":{"host":""}}"#, "mqtt.host: must not be empty (leave the key out instead)"),
    (
      #"{"mqtt":{"host":"mqtt://x"}}"#,
      #"mqtt.host: "mqtt://x" is not a host name or address "#
        + "(the host alone, without mqtt:// and path; the port goes to mqtt.port)"
    ),
    (
      #"{"mqtt":{"host":"a b"}}"#,
      #"mqtt.host: "a b" is not a host name or address (remove the white space)"#
    ),
    (
      #"{"mqtt":{"host":"localhost:1883"}}"#,
      #"mqtt.host: "localhost:1883" is not a host name or address (the host alone; the port goes to mqtt.port)"#
    ),
    (
      #"{"mqtt":{"host":"[::1]:1883"}}"#,
      #"mqtt.host: "[::1]:1883" is not a host name or address "#
        + "(an IPv6 address without brackets; the port goes to mqtt.port)"
    ),
    (
      #"{"mqtt":{"host":"a:b:1883"}}"#,
      #"mqtt.host: "a:b:1883" is not a host name or address (a name has no colon; the port goes to mqtt.port)"#
    ),
    (
      #"{"mqtt":{"host":"fe80::1%"}}"#,
      #"mqtt.host: "fe80::1%" is not a host name or address (a name has no colon; the port goes to mqtt.port)"#
    ),
    (#"{"mqtt":{"base_topic":"a/+/b"}}"#, #"mqtt.base_topic: "a/+/b" contains a wildcard, + or #"#),
    (#"{"mqtt":{"base_topic":"a#"}}"#, ##"mqtt.base_topic: "a#" contains a wildcard, + or #"##),
    (
      #"{"mqtt":{"base_topic":"/a"}}"#,
      #"mqtt.base_topic: "/a" has an empty level (no / at the start or the end, no //)"#
    ),
    (
      #"{"mqtt":{"base_topic":"a//b"}}"#,
      #"mqtt.base_topic: "a//b" has an empty level (no / at the start or the end, no //)"#
    ),
    (
      #"{"mqtt":{"base_topic":"$SYS"}}"#,
      #"mqtt.base_topic: "$SYS" begins with $, which is reserved for the broker"#
    ),
    (#"{"mqtt":{"base_topic":"a\u0000b"}}"#, #"mqtt.base_topic: "a·b" contains a control character"#),
    (
      #"{"mqtt":{"base_topic":"a\uFFFE"}}"#,
      "mqtt.base_topic: \"a·\" contains a character that brokers refuse"
    ),
    (#"{"mqtt":{"base_topic":""}}"#, "mqtt.base_topic: must not be empty (leave the key out instead)"),
    (##"{"home_assistant":{"prefix":"#"}}"##, ##"home_assistant.prefix: "#" contains a wildcard, + or #"##),
    (#"{"bluetooth":{"adapter":"hci"}}"#, #"bluetooth.adapter: "hci" is not an adapter (example: hci0)"#),
    (#"{"bluetooth":{"adapters":[]}}"#, "bluetooth.adapters: must not be empty (leave the key out for hci0)"),
    (#"{"bluetooth":{"adapters":["hci0","hci1","hci0"]}}"#, "bluetooth.adapters[2]: hci0 is listed already"),
    (
      #"{"bluetooth":{"adapters":["hci"]}}"#,
      #"bluetooth.adapters[0]: "hci" is not an adapter (example: hci0)"#
    ),
    (
      #"{"bluetooth":{"adapter":"hci1","adapters":["hci0"]}}"#,
      "bluetooth.adapter: adapters is given as well (list it there, and leave this out)"
    ),
    (#"{"bluetooth":{"links":0}}"#, "bluetooth.links: 0 is below 1"),
    (
      #"{"bluetooth":{"adapters":["hci0","hci2"]},"devices":[{"adapter":"hci1"}]}"#,
      "devices[0].adapter: hci1 is not an adapter of this gateway (bluetooth.adapters has hci0, hci2)"
    ),
    (
      #"{"gateway":{"id":"Living room"}}"#,
      #"gateway.id: "Living room" is not a valid id (try living-room)"#
    ),
    (
      #"{"gateway":{"id":"Küche"}}"#,
      #"gateway.id: "Küche" is not a valid id (try kueche)"#
    ),
    (#"{"devices":[{"period":19}]}"#, "devices[0].period: 19 is below 20"),
    (#"{"devices":[{"period":65536}]}"#, "devices[0].period: 65536 is above 65535"),
    (
      #"{"devices":[{"id":"bridge"}]}"#, #"devices[0].id: "bridge" is reserved: choose another id"#
    ),
    (
      #"{"devices":[{},{"match":{"name_prefix":"x"},"id":"K"}]}"#,
      #"devices[1].id: "K" is not a valid id (try k)"#
    ),
    (
      #"{"devices":[{"match":{"identifier":"C5:A1"}}]}"#,
      #"devices[0].match.identifier: "C5:A1" is not a Bluetooth address (example: C5:A1:B2:C3:D4:E5)"#
    ),
    (
      #"{"devices":[{"match":{"name_prefix":""}}]}"#,
      "devices[0].match.name_prefix: must not be empty (leave the key out instead)"
    ),
    (
      #"{"devices":[{"match":{"service":"180"}}]}"#,
      #"devices[0].match.service: "180" is not a UUID (examples: 180d, 0000180d-0000-1000-8000-00805f9b34fb)"#
    ),
    (#"{"devices":[{"match":{}}]}"#, "devices[0].match: must not be empty (\(oneOf))"),
    (
      #"{"devices":[{"match":{"min_rssi":-60}}]}"#,
      "devices[0].match.min_rssi: by itself matches every peripheral that is near (\(oneOf))"
    ),
  ]
}

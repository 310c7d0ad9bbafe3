import Configuration
import TestSupport
import Testing

@testable import Devices

@Suite struct WatchTests {
  @Test("Readings are sent as lines, after the state of the devices")
  func readings() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    #expect(try await client.request(#"{"request":"watch","id":"kitchen"}"#) == #"{"status":"ok","data":{}}"#)
    let state =
      #"{"device":"kitchen","identifier":"C5:A1:B2:C3:D4:E5","session":"absent","online":false}"#
    #expect(try await client.line() == state)
    await server.receive([21])
    let line = try #require(try await client.line())
    #expect(
      line.hasPrefix(#"{"device":"kitchen","property":"temperature","value":21,"unit":"°C","time":""#),
      "\(line)")
    #expect(line.hasSuffix(#","sequence":1}"#), "\(line)")
  }

  @Test("A renamed device is still watched after a change of its properties")
  func renamed() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    _ = try await client.request(#"{"request":"watch","id":"kitchen"}"#)
    _ = try await client.line()
    try await server.engine.rename(DeviceID("kitchen"), to: DeviceID("den"))
    #expect(try await client.line() == #"{"device":"kitchen","session":"removed"}"#)
    #expect(try await client.line()?.hasPrefix(#"{"device":"den","identifier":"C5:A1:B2:C3:D4:E5""#) == true)
    let text =
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen","properties":["button_a"]}]}"#
    await server.engine.configure(try Configuration.parse(Array(text.utf8)).get())
    #expect(await server.observers() == 1)
  }

  @Test("Only readings of the requested property are sent")
  func oneProperty() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    _ = try await client.request(#"{"request":"watch","id":"kitchen","property":"period"}"#)
    _ = try await client.line()
    await server.receive([21])
    // Answered after the reading, which is not sent.
    #expect(try await client.request(#"{"request":"health"}"#)?.contains("healthy") == true)
  }

  @Test("Devices are observed only while a client watches")
  func observed() async throws {
    let server = try await ServerUnderTest()
    #expect(await server.observers() == 0)
    let client = try LineClient(server.path)
    let other = try LineClient(server.path)
    _ = try await client.request(#"{"request":"watch"}"#)
    _ = try await other.request(#"{"request":"watch","id":"hall"}"#)
    #expect(await server.observers() == 1)
    // A second watch replaces the first one.
    _ = try await client.line()
    _ = try await client.line()
    _ = try await client.request(#"{"request":"watch"}"#)
    #expect(await server.observers() == 1)
    client.hangUp()
    // The server handles the end of the first client before the other's request.
    _ = try await other.request(#"{"request":"health"}"#)
    #expect(await server.observers() == 0)
  }

  @Test("A watcher that does not read loses readings, gets their number, and blocks nobody")
  func slow() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let other = try LineClient(server.path)
    _ = try await client.request(#"{"request":"watch","id":"kitchen"}"#)
    _ = try await client.line()
    let count = 20_000
    for start in stride(from: 0, to: count, by: 100) { await server.receive(Array(start..<start + 100)) }
    #expect(try await other.request(#"{"request":"health"}"#) != nil)
    var (received, dropped) = (0, 0)
    while received + dropped < count {
      let line = try #require(try await client.line())
      if line.hasPrefix(#"{"dropped":"#) {
        dropped += try #require(Int(line.dropFirst(11).dropLast()))
      } else {
        received += 1
        let sequence = try #require(line.split(separator: ":").last.flatMap { Int($0.dropLast()) })
        // In order; the number of the missing ones came before.
        #expect(sequence == received + dropped)
      }
    }
    #expect(dropped > 0)
    #expect(received + dropped == count)
  }
}

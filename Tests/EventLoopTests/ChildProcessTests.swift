import Glibc
import TestSupport
import Testing

struct ChildProcessTests {
  /// A broker would take a client for alive as long as a child has its socket.
  @Test func aChildInheritsNoDescriptorOfTheTests() async throws {
    let ours = open("/dev/null", O_RDONLY)
    defer { close(ours) }
    let child = try ChildProcess("/bin/sh", ["-c", "test ! -e /proc/$$/fd/\(ours)"])
    #expect(try await child.exitStatus() == 0)
  }
}

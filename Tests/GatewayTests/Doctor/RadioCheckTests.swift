import Findings
import Glibc
import TestSupport
import Testing

@testable import Gateway

/// A look at the ports of receivers while no gateway runs.
@Suite struct RadioCheckTests {
  private let folder: TemporaryFolder
  private let terminal: PseudoTerminal
  private let name = "usb-Arm_BBC_micro:bit_CMSIS-DAP_9904" + String(repeating: "0", count: 44) + "-if01"

  init() throws {
    (folder, terminal) = (try TemporaryFolder(), try PseudoTerminal())
  }

  @Test func withoutAReceiverItSaysWhatToPlugIn() {
    let found = RadioCheck(ports: .auto, folder: folder.path).run()
    #expect(
      found.map(\.level) == [.warning] && found[0].remedy?.contains("a cable that carries data") == true)
  }

  @Test func aReceiverIsFound() {
    #expect(symlink(terminal.path, "\(folder.path)/\(name)") == 0)
    // No micro:bit's.
    #expect(symlink(terminal.path, "\(folder.path)/usb-FTDI_FT232R_A50285BI-if00-port0") == 0)
    let found = RadioCheck(ports: .auto, folder: folder.path).run()
    #expect(found == [.ok(.radio, "a receiver is plugged in (\(folder.path)/\(name))")])
  }

  @Test func aPortThatIsNotThereIsNamed() {
    let found = RadioCheck(ports: .paths(["/nonexistent", terminal.path])).run()
    #expect(found.map(\.level) == [.fault, .ok] && found[0].text.contains("/nonexistent"))
  }
}

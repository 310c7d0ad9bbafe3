import GATT
import Testing

@testable import Devices

@Suite struct RemovedSequencesTests {
  @Test func aDeviceThatComesAgainNeverHasANumberTwice() {
    var sequences = RemovedSequences()
    let kitchen = BluetoothAddress(truncating: 0)
    #expect(sequences.take(kitchen) == 0)
    sequences.keep(80, of: kitchen)
    #expect(sequences.take(kitchen) == 80)
    for round: UInt64 in 1...3 {
      let before = 1000 * round
      sequences.keep(before, of: kitchen)
      for other in (1...UInt64(RemovedSequences.most)).map(BluetoothAddress.init(truncating:)) {
        sequences.keep(sequences.take(other) + 1, of: other)
      }
      #expect(sequences.take(kitchen) >= before)
    }
  }
}

import EventLoop
import JSON
import Log

/// The history of a device as CSV: a row for each time at which there is a value.
@LoopActor enum HistoryTable {
  private static let rowsAtOnce = 120

  static func body(_ device: WebDevice, hours: Int, _ state: WebState) -> Parts {
    let columns = device.columns
    let header = (["time"] + columns.map { CSV.cell($0.name) }).joined(separator: ",") + "\r\n"
    let times = state.history.times(hours: hours, until: .now)
    let shift = state.history.shift(at: .now, .now)
    let parts = stride(from: 0, to: times.count, by: rowsAtOnce).map { start in
      { @LoopActor [weak state, weak device] () -> [UInt8] in
        guard let state, let device, state.devices[device.device.address] === device else { return [] }
        let times = times[start..<min(start + rowsAtOnce, times.count)]
        return rows(times, shift, columns.map(\.series), state.history)
      }
    }
    return Parts([{ Array(header.utf8) }] + parts)
  }

  private static func rows(
    _ times: ArraySlice<Timestamp>, _ shift: Duration, _ series: [Int], _ history: History
  ) -> [UInt8] {
    var text = ""
    for time in times {
      let values = series.map { history.value($0, at: time) }
      guard values.contains(where: { $0 != nil }) else { continue }
      text +=
        ([(time + shift).description] + values.map { $0.map(shown) ?? "" }).joined(separator: ",") + "\r\n"
    }
    return Array(text.utf8)
  }

  private nonisolated static func shown(_ value: Float) -> String {
    Int(exactly: value).map(String.init) ?? "\(value)"
  }
}

/// How long the central waits for what. bluetoothd leaves some calls without an answer, so each has its end.
struct Limits: Sendable {
  /// For a Connect: beyond it the attempt is called off, for the sake of the others that wait. (bluetoothd
  /// itself gives up after 40 s.)
  var connect = Duration.seconds(20)
  /// For the services of a new link. A peripheral that answers nothing is dropped by bluetoothd after 30 s.
  var resolve = Duration.seconds(35)
  /// For the objects of services that are said to be resolved.
  var export = Duration.seconds(5)
  /// From the first of these objects, where they come late, to the last.
  var exportRest = Duration.milliseconds(500)
  /// Without a change, before services that change on a link count as complete: bluetoothd says of neither when it is
  /// (recorded: 0.5 s between what goes and what comes, at 50 ms for each answer of the peripheral). Nothing may be
  /// subscribed to before: bluetoothd crashes when it removes a characteristic that it is subscribing to.
  var servicesChange = Duration.seconds(1)
  /// For a read or a write, once more for the read-back that follows one; then its outcome is unknown. (bluetoothd itself
  /// gives up after 30 s.)
  var operation = Duration.seconds(10)
  /// Before an operation is tried again that met somebody else's on the same characteristic: a matter of a
  /// connection interval or two.
  var inProgress: [Duration] = [50, 100, 200, 400, 800].map { .milliseconds($0) }
  /// Between the failure of what was in flight, with ATT error 0x0e, and the news that the link is gone: 2 s.
  var linkLoss = Duration.milliseconds(2500)
  /// Before notifications that another program has are asked for again.
  var notifyRetry = Duration.seconds(60)
  /// For a Disconnect, over which bluetoothd takes 2 to 3 s.
  var disconnect = Duration.seconds(6)
  /// For the tree to learn what a call that was answered has brought about.
  var settle = Duration.seconds(2)
  /// For a peripheral that was removed from bluetoothd here to be found again.
  var rediscovery = Duration.seconds(30)
  /// For calls that only bluetoothd itself has to do with.
  var local = Duration.seconds(10)
  /// Before bluetoothd is asked again for its objects, or to scan.
  var retry = Duration.seconds(5)
  /// How long connects may keep the scan off, before it goes on for a moment between two of them.
  var scanPause = Duration.seconds(15)
  /// That moment: several advertising intervals.
  var scanBreath = Duration.seconds(3)
  /// How often is looked whether bluetoothd still scans as it promised.
  var scanCheck = Duration.seconds(30)
  /// For a bluetoothd that has just come to bring up its adapters, before they are said to be absent or off.
  var startup = Duration.seconds(2)
  /// Between two attempts to take the adapter, if the end of the other gateway was not noticed.
  var lockRetry = Duration.seconds(1)
  /// Before it is checked again whether the other gateway still runs.
  var lockWait = Duration.seconds(60)
  /// Before the bus is tried again: the first wait, and the longest.
  var busRetry = (first: Duration.milliseconds(500), longest: Duration.seconds(10))
}

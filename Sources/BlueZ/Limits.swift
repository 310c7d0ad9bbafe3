import EventLoop

/// The central's time limits. bluetoothd leaves some calls unanswered, so every wait is bounded.
package struct Limits: Sendable {
  /// The limits of a gateway.
  package init() {}

  /// For a Connect; then the attempt is cancelled, as others wait. (bluetoothd itself cancels it after 40 s.)
  var connect = Duration.seconds(20)
  /// For pairing on a link. bluetoothd waits for a passkey for 60 s; the kernel ends the link if the peripheral does
  /// not respond for 30 s.
  var pair = Duration.seconds(70)
  /// A link to a paired peripheral that ends sooner was refused encryption. A link whose peripheral has gone ends after
  /// its supervision time-out (the kernel's: 420 ms).
  var shortLink = Duration.milliseconds(400)
  /// For resolving the services of a new link. bluetoothd drops an unresponsive peripheral after 30 s.
  var resolve = Duration.seconds(35)
  /// For the objects of resolved services to be exported.
  var export = Duration.seconds(5)
  /// From the first of these objects, if they are exported late, to the last.
  var exportRest = Duration.milliseconds(500)
  /// Without another change, for services that change on a link to count as complete: bluetoothd reports neither the
  /// beginning nor the end (recorded: 0.5 s between removals and additions, at 50 ms for each response of the
  /// peripheral). Nothing may be subscribed to before: bluetoothd crashes when it removes a characteristic while it
  /// subscribes to it.
  var servicesChange = Duration.seconds(1)
  /// For a read or a write, and the same again for a read-back; then the outcome is unknown. (bluetoothd itself ends
  /// them after 30 s.)
  var operation = Duration.seconds(10)
  /// How often a call that bluetoothd answers with `InProgress` is retried.
  var busyRetries = 5
  /// Between these retries: another operation on the characteristic takes a connection interval or two.
  var busyBackOff = BackOff(first: .milliseconds(50), longest: .milliseconds(800), spread: 0)
  /// From the failure of operations in flight with ATT error 0x0e to the signal that the link has ended: 2 s.
  var linkLoss = Duration.milliseconds(2500)
  /// Between attempts to subscribe while another program has acquired the notifications.
  var notifyRetry = Duration.seconds(60)
  /// For a Disconnect, which takes bluetoothd 2 to 3 s.
  var disconnect = Duration.seconds(6)
  /// For signals to show the effect of a call that was answered.
  var treeUpdate = Duration.seconds(2)
  /// For a peripheral that was removed from bluetoothd to be found again.
  var rediscovery = Duration.seconds(30)
  /// For calls that involve no peripheral.
  var local = Duration.seconds(10)
  /// For bluetoothd to list its objects, of which there may be thousands.
  var objectList = Duration.seconds(30)
  /// Before GetManagedObjects or StartDiscovery is retried.
  var retry = Duration.seconds(5)
  /// How long consecutive connects may pause scanning before it is resumed briefly.
  var scanPause = Duration.seconds(15)
  /// How long it is then resumed: several advertising intervals.
  var briefScan = Duration.seconds(3)
  /// For discovery to stop before a connect, which then begins in any case.
  var scanStop = Duration.seconds(12)
  /// How often to check that bluetoothd still scans: several of the kernel's scans (10 s each); less often where nothing
  /// advertises.
  var scanCheck = BackOff(first: .seconds(30), longest: .seconds(300), spread: 0)
  /// From the first failure to scan until the adapter is reset, and between two resets.
  var scanReset = BackOff(first: .seconds(60), longest: .seconds(3600))
  /// Between attempts to power on an adapter that a reset has left off.
  var powerBackOff = BackOff(first: .seconds(5), longest: .seconds(300))
  /// For a bluetoothd that has just started to bring up its adapters, before they are reported as absent or off.
  var startup = Duration.seconds(2)
  /// Between two attempts to lock an adapter that another gateway uses.
  var lockRetry = Duration.seconds(1)
  /// Between two attempts to lock an adapter if the bus does not allow it; it logs each.
  var deniedLockBackOff = BackOff(first: .seconds(30), longest: .seconds(3600))
  /// Between attempts to connect to the bus.
  var busBackOff = BackOff(first: .milliseconds(500), longest: .seconds(10))
}

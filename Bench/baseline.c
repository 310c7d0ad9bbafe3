// What the gateway does for its measure: the same work done by a plain C program.
//
// Finds micro:bits by org.bluez, connects to one after the other, reads the temperature (or the acceleration) once and
// then takes its notifications by StartNotify, publishes each as a retained QoS 0 message, and confirms a period command
// by WriteValue and ReadValue. No configuration, no reconnecting, no time-outs, no logs, no hostile input: whatever the
// gateway costs beyond this program is the price of those.
//
//   baseline PORT temperature|accelerometer
//
// PORT is that of MQTT on 127.0.0.1; the bus is $DBUS_SYSTEM_BUS_ADDRESS.
#include <ctype.h>
#include <dbus/dbus.h>
#include <mosquitto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <signal.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#define ADAPTER "/org/bluez/hci0"
#define TEMPERATURE "e95d9250-251d-470a-a062-fa1922dfa9a8"
#define ACCELERATION "e95dca4b-251d-470a-a062-fa1922dfa9a8"
#define PERIOD "e95d1b25-251d-470a-a062-fa1922dfa9a8"
#define PREFIX "BBC micro:bit"
#define PROPERTIES_CHANGED \
  "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0="

struct device {
  char path[64], id[13];            // id: the address in lower case, without colons
  char *sensor, *period;            // object paths of the characteristics, once they are there
  char topic[48];
  int wanted;                       // the period being written, 0 when none is
  struct device *next;              // in the queue for a connection
};

static sd_bus *bus;
static DBusConnection *signals;         // for those of notifications alone
static DBusWatch *signals_readable;
static struct mosquitto *broker;
static struct device *devices[1024];
static int device_count, epoll;
static bool is_accelerometer;           // the sensor; else the temperature
static struct device *notifying[4096];  // a hash table, the key is the path of the sensor
static struct device *queue, **queue_end = &queue, *connecting;
static enum { OFF, CHANGING, ON } scan;

// Marks in epoll's data.
static char on_bus, on_signals, on_broker, on_signal;

#define CHECK(call) \
  do { \
    int r_ = (call); \
    if (r_ < 0) { \
      fprintf(stderr, "baseline: %s: %s\n", #call, strerror(-r_)); \
      exit(1); \
    } \
  } while (0)

static int failed(sd_bus_message *reply, const char *what) {
  const sd_bus_error *error = sd_bus_message_get_error(reply);
  if (error) fprintf(stderr, "baseline: %s: %s: %s\n", what, error->name, error->message);
  return error != NULL;
}

static struct device *device_at(const char *path) {
  for (int i = 0; i < device_count; i++) {
    size_t length = strlen(devices[i]->path);
    if (!strncmp(path, devices[i]->path, length) && (!path[length] || path[length] == '/')) return devices[i];
  }
  return NULL;
}

static void publish(const char *topic, const char *payload, int length, bool retain) {
  mosquitto_publish(broker, NULL, topic, length, payload, 0, retain);
}

static void publish_reading(struct device *device, const uint8_t *bytes, int count) {
  char text[48];
  int length;
  if (is_accelerometer && count == 6) {
    int16_t x = bytes[0] | bytes[1] << 8, y = bytes[2] | bytes[3] << 8, z = bytes[4] | bytes[5] << 8;
    length = snprintf(text, sizeof text, "{\"x\":%d,\"y\":%d,\"z\":%d}", x, y, z);
  } else if (!is_accelerometer && count == 1) {
    length = snprintf(text, sizeof text, "%d", (int8_t)bytes[0]);
  } else {
    return;
  }
  publish(device->topic, text, length, true);
}

// ---- Notifications.

// Where in the table a path is, or would be: at most a quarter of the places are taken.
static struct device **notifying_at(const char *path) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char *c = path; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619;
  for (;; hash++) {
    struct device **place = &notifying[hash % 4096];
    if (!*place || !strcmp((*place)->sensor, path)) return place;
  }
}

static dbus_bool_t add_watch(DBusWatch *w, void *data) {
  if (dbus_watch_get_flags(w) & DBUS_WATCH_READABLE) signals_readable = w;
  return 1;
}

static void remove_watch(DBusWatch *w, void *data) {}

// The signals of notifications: by libdbus, the library of the gateway, so that what is compared are the programs. (By
// sd-bus they cost this program half as much. It is not for the gateway: it refuses a whole message for a character like
// U+FFFE, which anybody may have in a name on the air, and with the list of devices it loses all of them.)
static void take_signals(void) {
  dbus_watch_handle(signals_readable, DBUS_WATCH_READABLE);
  for (DBusMessage *m; (m = dbus_connection_pop_message(signals)); dbus_message_unref(m)) {
    const char *path = dbus_message_get_path(m), *name;
    struct device *device = path ? *notifying_at(path) : NULL;
    DBusMessageIter arguments, entries, entry, variant, bytes;
    if (!device || !dbus_message_has_signature(m, "sa{sv}as") || !dbus_message_iter_init(m, &arguments)) continue;
    dbus_message_iter_next(&arguments);
    for (dbus_message_iter_recurse(&arguments, &entries); dbus_message_iter_get_arg_type(&entries);
         dbus_message_iter_next(&entries)) {
      dbus_message_iter_recurse(&entries, &entry);
      dbus_message_iter_get_basic(&entry, &name);
      if (strcmp(name, "Value")) continue;
      dbus_message_iter_next(&entry);
      dbus_message_iter_recurse(&entry, &variant);
      if (dbus_message_iter_get_arg_type(&variant) != DBUS_TYPE_ARRAY) break;
      const uint8_t *value;
      int count = 0;
      dbus_message_iter_recurse(&variant, &bytes);
      dbus_message_iter_get_fixed_array(&bytes, &value, &count);
      publish_reading(device, value, count);
      break;
    }
  }
}

// ---- Connecting: one at a time, with discovery off, as a connect beside a scan takes long.

static void next_step(void);

static int subscribed(sd_bus_message *reply, void *data, sd_bus_error *error) {
  failed(reply, "StartNotify");
  connecting = NULL;
  next_step();
  return 0;
}

static int first_value(sd_bus_message *reply, void *data, sd_bus_error *error) {
  struct device *device = data;
  const void *bytes;
  size_t count;
  if (!failed(reply, "ReadValue") && sd_bus_message_read_array(reply, 'y', &bytes, &count) >= 0 &&
      count > 0)
    publish_reading(device, bytes, count);
  *notifying_at(device->sensor) = device;
  CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", device->sensor, "org.bluez.GattCharacteristic1",
                                 "StartNotify", subscribed, device, ""));
  return 0;
}

static void resolved(struct device *device) {
  if (device != connecting || !device->sensor) return;
  CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", device->sensor, "org.bluez.GattCharacteristic1",
                                 "ReadValue", first_value, device, "a{sv}", 0));
}

static int connected(sd_bus_message *reply, void *data, sd_bus_error *error) {
  if (failed(reply, "Connect")) {
    connecting = NULL;
    next_step();
  }
  return 0;  // else ServicesResolved goes on from here
}

static int scan_changed(sd_bus_message *reply, void *data, sd_bus_error *error) {
  failed(reply, "discovery");
  scan = data ? ON : OFF;
  next_step();
  return 0;
}

static void next_step(void) {
  if (connecting || scan == CHANGING) return;
  if (queue && scan == ON) {
    scan = CHANGING;
    CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", ADAPTER, "org.bluez.Adapter1", "StopDiscovery",
                                   scan_changed, NULL, ""));
  } else if (queue) {
    connecting = queue;
    queue = queue->next;
    if (!queue) queue_end = &queue;
    CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", connecting->path, "org.bluez.Device1", "Connect",
                                   connected, NULL, ""));
  } else if (scan == OFF) {
    scan = CHANGING;
    CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", ADAPTER, "org.bluez.Adapter1", "SetDiscoveryFilter",
                                   NULL, NULL, "a{sv}", 1, "Transport", "s", "le"));
    CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", ADAPTER, "org.bluez.Adapter1", "StartDiscovery",
                                   scan_changed, &on_bus, ""));
  }
}

static void seen(const char *path, const char *name) {
  if (strncmp(name, PREFIX, strlen(PREFIX)) || device_at(path) || device_count == 1024) return;
  struct device *device = calloc(1, sizeof *device);
  snprintf(device->path, sizeof device->path, "%s", path);
  const char *address = strstr(path, "dev_");
  if (!address) return;
  char *out = device->id;
  for (const char *c = address + 4; *c && out < device->id + 12; c++)
    if (*c != '_') *out++ = tolower(*c);
  snprintf(device->topic, sizeof device->topic, "microbit/%s/%s", device->id,
           is_accelerometer ? "accelerometer" : "temperature");
  devices[device_count++] = device;
  *queue_end = device;
  queue_end = &device->next;
}

// ---- org.bluez's signals.

// The string value of the property that the message is at, or NULL.
static const char *string_value(sd_bus_message *m, const char *type) {
  const char *text = NULL;
  if (sd_bus_message_enter_container(m, 'v', type) > 0) {
    sd_bus_message_read(m, type, &text);
    sd_bus_message_exit_container(m);
  } else {
    sd_bus_message_skip(m, "v");
  }
  return text;
}

// An object and its interfaces: a device, or a characteristic of one.
static void read_object(sd_bus_message *m, const char *path) {
  const char *interface, *name, *text;
  sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
  while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
    sd_bus_message_read(m, "s", &interface);
    int is_device = !strcmp(interface, "org.bluez.Device1");
    if (!is_device && strcmp(interface, "org.bluez.GattCharacteristic1")) {
      sd_bus_message_skip(m, "a{sv}");
    } else {
      sd_bus_message_enter_container(m, 'a', "{sv}");
      while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
        sd_bus_message_read(m, "s", &name);
        text = !strcmp(name, is_device ? "Name" : "UUID") ? string_value(m, "s") : (sd_bus_message_skip(m, "v"), NULL);
        if (text && is_device) seen(path, text);
        struct device *device = text && !is_device ? device_at(path) : NULL;
        if (device && !strcmp(text, is_accelerometer ? ACCELERATION : TEMPERATURE)) device->sensor = strdup(path);
        if (device && !strcmp(text, PERIOD)) device->period = strdup(path);
        sd_bus_message_exit_container(m);
      }
      sd_bus_message_exit_container(m);
    }
    sd_bus_message_exit_container(m);
  }
  sd_bus_message_exit_container(m);
}

static int added(sd_bus_message *m, void *data, sd_bus_error *error) {
  const char *path;
  if (sd_bus_message_read(m, "o", &path) < 0) return 0;
  read_object(m, path);
  next_step();
  return 0;
}

static int changed(sd_bus_message *m, void *data, sd_bus_error *error) {
  const char *interface, *name;
  int value = 0;
  if (!connecting || strcmp(sd_bus_message_get_path(m), connecting->path)) return 0;
  sd_bus_message_read(m, "s", &interface);
  sd_bus_message_enter_container(m, 'a', "{sv}");
  while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
    sd_bus_message_read(m, "s", &name);
    if (!strcmp(name, "ServicesResolved")) {
      sd_bus_message_read(m, "v", "b", &value);
    } else {
      sd_bus_message_skip(m, "v");
    }
    sd_bus_message_exit_container(m);
  }
  if (value) resolved(connecting);
  return 0;
}

static int objects(sd_bus_message *reply, void *data, sd_bus_error *error) {
  const char *path;
  if (failed(reply, "GetManagedObjects")) return 0;
  sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}");
  while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
    sd_bus_message_read(reply, "o", &path);
    read_object(reply, path);
    sd_bus_message_exit_container(reply);
  }
  next_step();
  return 0;
}

// ---- Period commands: write, read back, tell.

static void answer(struct device *device, const char *status, int actual) {
  char topic[48], text[96];
  snprintf(topic, sizeof topic, "microbit/%s/period/result", device->id);
  int length = snprintf(text, sizeof text, "{\"status\":\"%s\",\"requested\":%d,\"actual\":%d}", status,
                        device->wanted, actual);
  publish(topic, text, length, false);
  device->wanted = 0;
}

static int read_back(sd_bus_message *reply, void *data, sd_bus_error *error) {
  struct device *device = data;
  const void *bytes;
  size_t count;
  if (failed(reply, "ReadValue") || sd_bus_message_read_array(reply, 'y', &bytes, &count) < 0 || count != 2) {
    answer(device, "failed", 0);
  } else {
    const uint8_t *b = bytes;
    int actual = b[0] | b[1] << 8;
    char topic[40], text[8];
    snprintf(topic, sizeof topic, "microbit/%s/period", device->id);
    publish(topic, text, snprintf(text, sizeof text, "%d", actual), true);
    answer(device, actual == device->wanted ? "applied" : "adjusted", actual);
  }
  return 0;
}

static int written(sd_bus_message *reply, void *data, sd_bus_error *error) {
  struct device *device = data;
  if (failed(reply, "WriteValue")) {
    answer(device, "failed", 0);
  } else {
    CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", device->period, "org.bluez.GattCharacteristic1",
                                   "ReadValue", read_back, device, "a{sv}", 0));
  }
  return 0;
}

static void commanded(struct mosquitto *m, void *data, const struct mosquitto_message *message) {
  char id[13], text[8] = "";
  if (sscanf(message->topic, "microbit/%12[0-9a-f]/period/set", id) != 1) return;
  memcpy(text, message->payload, message->payloadlen < 7 ? message->payloadlen : 7);
  int value = atoi(text);
  for (int i = 0; i < device_count; i++) {
    struct device *device = devices[i];
    if (strcmp(device->id, id) || !device->period || device->wanted || value < 1 || value > 65535) continue;
    uint8_t bytes[2] = {value, value >> 8};
    sd_bus_message *call;
    device->wanted = value;
    CHECK(sd_bus_message_new_method_call(bus, &call, "org.bluez", device->period, "org.bluez.GattCharacteristic1",
                                         "WriteValue"));
    CHECK(sd_bus_message_append_array(call, 'y', bytes, sizeof bytes));
    CHECK(sd_bus_message_append(call, "a{sv}", 1, "type", "s", "request"));
    CHECK(sd_bus_call_async(bus, NULL, call, written, device, 0));
    sd_bus_message_unref(call);
  }
}

// ---- The loop.

static void watch(int fd, void *mark) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

int main(int argc, char **argv) {
  if (argc != 3 || (strcmp(argv[2], "temperature") && strcmp(argv[2], "accelerometer"))) {
    fprintf(stderr, "baseline PORT temperature|accelerometer\n");
    return 64;
  }
  is_accelerometer = !strcmp(argv[2], "accelerometer");
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  sigprocmask(SIG_BLOCK, &stop, NULL);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(signalfd(-1, &stop, SFD_CLOEXEC), &on_signal);

  mosquitto_lib_init();
  broker = mosquitto_new("baseline", true, NULL);
  mosquitto_int_option(broker, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_int_option(broker, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_message_callback_set(broker, commanded);
  if (mosquitto_connect(broker, "127.0.0.1", atoi(argv[1]), 60)) return 1;
  mosquitto_subscribe(broker, NULL, "microbit/+/period/set", 1);
  watch(mosquitto_socket(broker), &on_broker);

  CHECK(sd_bus_open_system(&bus));
  CHECK(sd_bus_match_signal(bus, NULL, "org.bluez", NULL, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded",
                            added, NULL));
  CHECK(sd_bus_add_match(bus, NULL, PROPERTIES_CHANGED "'org.bluez.Device1'", changed, NULL));
  int fd;
  signals = dbus_bus_get_private(DBUS_BUS_SYSTEM, NULL);
  if (!signals) return 1;
  dbus_bus_add_match(signals, PROPERTIES_CHANGED "'org.bluez.GattCharacteristic1'", NULL);
  dbus_connection_flush(signals);
  dbus_connection_set_watch_functions(signals, add_watch, remove_watch, NULL, NULL, NULL);
  dbus_connection_get_unix_fd(signals, &fd);
  watch(fd, &on_signals);
  CHECK(sd_bus_call_method_async(bus, NULL, "org.bluez", "/", "org.freedesktop.DBus.ObjectManager",
                                 "GetManagedObjects", objects, NULL, ""));
  watch(sd_bus_get_fd(bus), &on_bus);

  struct epoll_event events[64];
  struct timespec now;
  time_t tick = 0;
  int count = 0, busy = 1;
  for (;;) {
    // Before each wait the bus is to be emptied of what it has read already, as its descriptor tells nothing of that.
    while (busy && sd_bus_process(bus, NULL) > 0) {}
    busy = 0;
    if (mosquitto_want_write(broker)) mosquitto_loop_write(broker, 1);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != tick && mosquitto_loop_misc(broker)) return 1;
    tick = now.tv_sec;
    count = epoll_wait(epoll, events, 64, 1000);
    for (int i = 0; i < count; i++) {
      void *mark = events[i].data.ptr;
      if (mark == &on_signal) {
        mosquitto_disconnect(broker);
        return 0;
      } else if (mark == &on_bus) {
        busy = 1;
      } else if (mark == &on_signals) {
        take_signals();
      } else {
        if (mosquitto_loop_read(broker, 1)) return 1;
        busy = 1;  // a command may have made a call
      }
    }
  }
}

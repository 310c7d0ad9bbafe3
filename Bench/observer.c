// Measures one program under load: starts it, subscribes to what it publishes, times everything, ends it.
//
//   observer OPTION=VALUE… -- PROGRAM ARGUMENT…
//     port=N           the broker, on 127.0.0.1
//     trace=FILE       what the simulator writes with --trace
//     devices=N        how many micro:bits there are
//     topic=NAME       what is counted of each device: temperature, accelerometer or readings
//     qos=0|1          of the subscription
//     period=MS        the period with which the micro:bits start
//     seconds=S        the length of the measuring window; 0: end with the first reading
//     commands=N       period commands to time, one after the other
//     requests=N       of its lists of devices to ask a gateway for, likewise; its announcements to Home Assistant
//                      are timed, too
//     ramp=MS,MS,…     then these periods, for all micro:bits, as long as nothing is lost; set in the simulator, since
//                      commands go no lower than 20 ms
//     control=SOCKET   of the simulator, for that
//     watch=NAME:PID   another process whose CPU time is told, too; repeated
//     log=FILE         the program's standard error
//
// Prints one line of NAME=VALUE pairs for each thing measured: start, steady, commands, requests, memory, rate, stop. Times of
// day are CLOCK_MONOTONIC, as in the trace, and a message counts as received when recv has returned it.
//
// It speaks MQTT 3.1.1 itself, many packets a recv: on a machine of two cores a library's four system calls a packet
// would be felt in what is measured.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS 257  // of the trace, for each device: the number sent, the time of each value
#define MOST_DEVICES 1024

static int port, device_count = 1, qos, command_count, request_count, seconds = 3, period = 100;
static const char *trace_file, *topic = "temperature", *ramp = "", *control = "", *log_file = "/dev/null";
static struct { const char *name; pid_t pid; } watched[8];
static int watched_count;

static int broker;                         // the connection
static const volatile uint64_t *trace;
static pid_t program;

// What has been received. `last` is the last value of a device, -1 before the first.
static int last[MOST_DEVICES];
static char ids[MOST_DEVICES][13];         // as in topics
static int heard;                          // devices
static uint64_t first_at, received, lost, result_at;
static char result_device[16], result_status[16];
static uint64_t response_at;               // of the last list of devices
static bool is_announced[MOST_DEVICES];
static int announced;                      // devices
static uint64_t *latencies;                // ns, of the present window
static size_t latency_count, latency_room;

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "observer: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  if (program > 0) kill(program, SIGKILL);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// ---- What messages mean.

// Addresses of the simulator's micro:bits: byte 3 counts, byte 1 counts the 256s from 0x5a.
static int device_of(const char *id) {
  unsigned b[6];
  if (sscanf(id, "%2x%2x%2x%2x%2x%2x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6) return -1;
  int index = b[3] + 256 * (b[1] - 0x5a);
  return index >= 0 && index < device_count ? index : -1;
}

static void reading(int device, uint8_t value, uint64_t now) {
  if (!first_at) first_at = now;
  received++;
  if (last[device] < 0) {
    heard++;  // the value that was read, not notified: it has no time
  } else if (last[device] != value) {
    lost += (uint8_t)(value - last[device] - 1);
    if (latency_count == latency_room) {
      latency_room = latency_room ? 2 * latency_room : 65536;
      latencies = realloc(latencies, latency_room * sizeof *latencies);
    }
    uint64_t sent_at = trace[device * WORDS + 1 + value];
    latencies[latency_count++] = now > sent_at ? now - sent_at : 0;
  }
  last[device] = value;
}

static void message(char *name, char *payload, bool retained, uint64_t now) {
  char *id = strchr(name, '/'), *kind = id ? strchr(++id, '/') : NULL;
  if (!kind || retained) return;
  *kind++ = 0;  // the id ends here
  if (!strcmp(kind, "period/result")) {
    char *status = strstr(payload, "\"status\":\"");
    snprintf(result_device, sizeof result_device, "%s", id);
    snprintf(result_status, sizeof result_status, "%s", status ? status + 10 : "?");
    result_status[strcspn(result_status, "\"")] = 0;
    result_at = now;
  } else if (!strcmp(kind, "bench/response/devices")) {
    if (strstr(payload, "\"status\":\"ok\"")) response_at = now;
  } else if (!strncmp(kind, "ble_", 4)) {
    int device = device_of(kind + 4);
    if (device >= 0 && !is_announced[device]) is_announced[device] = true, announced++;
  } else if (!strcmp(kind, topic)) {
    // Of the acceleration the x, the first field.
    const char *key = strcmp(topic, "accelerometer") ? "\"value\":" : "{\"x\":";
    char *value = *payload == '{' ? strstr(payload, key) : NULL;
    int device = device_of(id);
    if (device < 0) return;
    if (last[device] < 0) snprintf(ids[device], sizeof ids[device], "%.12s", id);
    reading(device, atoi(value ? value + strlen(key) : payload), now);
  }
}

// ---- MQTT 3.1.1, as much as is needed.

static void send_packet(const void *bytes, size_t count) {
  if (send(broker, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) fail("the broker takes no more");
}

static size_t put_string(uint8_t *to, const char *text) {
  size_t length = strlen(text);
  to[0] = length >> 8;
  to[1] = length;
  memcpy(to + 2, text, length);
  return length + 2;
}

static void subscribe(const char *filter, int qos) {
  uint8_t packet[128] = {0x82, 0, 0, 1};
  size_t length = 4 + put_string(packet + 4, filter);
  packet[length++] = qos;
  packet[1] = length - 2;
  send_packet(packet, length);
}

static void publish(const char *name, const char *payload) {
  uint8_t packet[128] = {0x30};
  size_t length = 2 + put_string(packet + 2, name);
  memcpy(packet + length, payload, strlen(payload));
  length += strlen(payload);
  packet[1] = length - 2;
  send_packet(packet, length);
}

static void connect_broker(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  broker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(broker, (struct sockaddr *)&address, sizeof address)) fail("no broker on port %d", port);
  setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Clean session, no keep-alive, the client id "observer".
  static const uint8_t hello[] = "\x10\x14\x00\x04MQTT\x04\x02\x00\x00\x00\x08observer";
  send_packet(hello, sizeof hello - 1);
  char filter[64];
  snprintf(filter, sizeof filter, "microbit/+/%s", topic);
  subscribe(filter, qos);
  subscribe("microbit/+/period/result", qos);
  if (!request_count) return;
  subscribe("microbit/bridge/bench/response/devices", qos);
  subscribe("homeassistant/device/+/config", qos);
}

static int subacks;

// Takes what the broker has sent, for at most `wait` ns.
static void receive(int64_t wait) {
  static uint8_t buffer[1 << 22];
  static size_t filled;
  struct pollfd poll_broker = {.fd = broker, .events = POLLIN};
  struct timespec limit = {wait / 1000000000, wait % 1000000000};
  if (ppoll(&poll_broker, 1, &limit, NULL) <= 0) return;
  ssize_t count = recv(broker, buffer + filled, sizeof buffer - 1 - filled, MSG_DONTWAIT);
  uint64_t now = now_ns();
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the broker has gone");
  filled += count;
  uint8_t acknowledgements[8192];
  size_t owed = 0, at = 0;
  for (;;) {
    size_t length = 0, header = 1, left = filled - at;
    for (int shift = 0; header < left; shift += 7) {
      length |= (size_t)(buffer[at + header] & 0x7f) << shift;
      if (!(buffer[at + header++] & 0x80)) break;
    }
    if (left < 2 || left < header + length) break;
    uint8_t *packet = buffer + at, *body = packet + header;
    if (packet[0] >> 4 == 3) {
      size_t name_length = body[0] << 8 | body[1], payload = 2 + name_length;
      if (packet[0] & 6) {
        uint8_t acknowledgement[4] = {0x40, 2, body[payload], body[payload + 1]};
        memcpy(acknowledgements + owed, acknowledgement, 4);
        if ((owed += 4) == sizeof acknowledgements) send_packet(acknowledgements, owed), owed = 0;
        payload += 2;
      }
      // Text ends are written over what has been used already, and over the next packet's first byte for a moment.
      char name[128] = "";
      memcpy(name, body + 2, name_length < 127 ? name_length : 127);
      uint8_t next = body[length];
      body[length] = 0;
      message(name, (char *)body + payload, packet[0] & 1, now);
      body[length] = next;
    } else if (packet[0] >> 4 == 9) {
      subacks++;
    }
    at += header + length;
  }
  memmove(buffer, buffer + at, filled - at);
  filled -= at;
  if (owed) send_packet(acknowledgements, owed);
}

// Receives until `deadline`; ends early when `*count` has come to `wanted`.
static bool receive_until(uint64_t deadline, const int *count, int wanted) {
  for (;;) {
    if (count && *count >= wanted) return true;
    uint64_t now = now_ns();
    if (now >= deadline) return !count;
    if (waitpid(program, NULL, WNOHANG) == program) program = 0, fail("the program has ended by itself, see its log");
    receive(deadline - now);
  }
}

// ---- What processes have used.

// CPU time of all threads of a process, in ns: exact, unlike the ticks in /proc/PID/stat.
static uint64_t cpu_ns(pid_t pid) {
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t)) fail("process %d has ended", pid);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// The number after `key` in a file of /proc/PID.
static long proc_number(pid_t pid, const char *file, const char *key) {
  char path[64], line[256];
  long result = 0;
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  FILE *stream = fopen(path, "r");
  while (stream && fgets(line, sizeof line, stream))
    if (!strncmp(line, key, strlen(key))) result = atol(line + strlen(key));
  if (stream) fclose(stream);
  return result;
}

// CPU time of the whole machine, in ns; a hypervisor's other guests (steal) are told as busy, too.
static uint64_t machine_ns(void) {
  unsigned long long user, nice, system, idle, wait, irq, soft, steal;
  FILE *stream = fopen("/proc/stat", "r");
  if (!stream || fscanf(stream, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
                        &soft, &steal) != 8)
    fail("/proc/stat cannot be read");
  fclose(stream);
  return (user + nice + system + irq + soft + steal) * (1000000000ull / sysconf(_SC_CLK_TCK));
}

// ---- A window: everything as it is at its start, and what has come of it at its end.

struct window {
  uint64_t begin, cpu, own, machine, others[8], sent, received, lost;
  long switches;
};

static uint64_t sent_count(void) {
  uint64_t sum = 0;
  for (int i = 0; i < device_count; i++) sum += trace[i * WORDS];
  return sum;
}

static struct window take_stock(void) {
  struct window w = {.machine = machine_ns(), .own = cpu_ns(getpid()), .sent = sent_count()};
  for (int i = 0; i < watched_count; i++) w.others[i] = cpu_ns(watched[i].pid);
  w.switches = proc_number(program, "status", "voluntary_ctxt_switches:");
  w.cpu = cpu_ns(program);
  w.begin = now_ns();
  w.received = received;
  w.lost = lost;
  return w;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

// The quantile of `count` values in order, in µs.
static double quantile_us(const uint64_t *values, size_t count, double q) {
  return count ? values[(size_t)(q * (count - 1) + 0.5)] / 1e3 : 0;
}

// Measures for `duration` s; whether nothing was lost and nothing falls behind.
static bool measure(const char *what, double duration, int period_ms) {
  latency_count = 0;
  struct window a = take_stock();
  receive_until(a.begin + duration * 1e9, NULL, 0);
  struct window b = take_stock();
  double elapsed = b.begin - a.begin, share = 100 / elapsed;
  uint64_t count = b.received - a.received, sent = b.sent - a.sent, known = b.cpu - a.cpu + b.own - a.own;
  qsort(latencies, latency_count, sizeof *latencies, ascending);
  double p99 = quantile_us(latencies, latency_count, .99);
  printf("%s period=%d sent=%.1f received=%.1f lost=%lu cpu_us=%.3f wakes=%.3f p50=%.1f p99=%.1f "
         "cpu_program=%.1f cpu_observer=%.1f",
         what, period_ms, sent / elapsed * 1e9, count / elapsed * 1e9, b.lost - a.lost,
         count ? (b.cpu - a.cpu) / 1e3 / count : 0, count ? (double)(b.switches - a.switches) / count : 0,
         quantile_us(latencies, latency_count, .5), p99, (b.cpu - a.cpu) * share, (b.own - a.own) * share);
  for (int i = 0; i < watched_count; i++) {
    printf(" cpu_%s=%.1f", watched[i].name, (b.others[i] - a.others[i]) * share);
    known += b.others[i] - a.others[i];
  }
  uint64_t busy = b.machine - a.machine;
  // A backlog shows as messages that are late by many periods, or missing at the end of the window.
  bool good = b.lost == a.lost && count >= sent * 0.97 && p99 < 100000;
  printf(" cpu_foreign=%.1f good=%d\n", busy > known ? (busy - known) * share : 0, good);
  fflush(stdout);
  return good;
}

// ---- Commands.

// Sets a period and waits for its confirmation; the time that took in ns, or 0.
static uint64_t command(int device, int value) {
  char name[64], text[16];
  snprintf(name, sizeof name, "microbit/%s/period/set", ids[device]);
  snprintf(text, sizeof text, "%d", value);
  result_at = 0;
  uint64_t begin = now_ns(), deadline = begin + 2000000000;
  publish(name, text);
  while (!result_at && now_ns() < deadline) receive(deadline - now_ns());
  if (!result_at || strcmp(result_device, ids[device]) || strcmp(result_status, "applied")) return 0;
  return result_at - begin;
}

static void time_commands(void) {
  uint64_t *times = calloc(command_count, sizeof *times);
  int answered = 0;
  for (int i = 0; i < command_count; i++) {
    // To and fro, so that each one changes something.
    uint64_t time = command(i % device_count, period + (i / device_count) % 2);
    if (time) times[answered++] = time;
  }
  qsort(times, answered, sizeof *times, ascending);
  printf("commands sent=%d applied=%d p50=%.1f p99=%.1f\n", command_count, answered, quantile_us(times, answered, .5),
         quantile_us(times, answered, .99));
  free(times);
}

// Asks for the list of devices; the time to the answer in ns, or 0.
static uint64_t request(void) {
  response_at = 0;
  uint64_t begin = now_ns(), deadline = begin + 2000000000;
  publish("microbit/bridge/bench/request/devices", "");
  while (!response_at && now_ns() < deadline) receive(deadline - now_ns());
  return response_at ? response_at - begin : 0;
}

static void time_requests(void) {
  uint64_t *times = calloc(request_count, sizeof *times);
  int answered = 0;
  for (int i = 0; i < request_count; i++) {
    uint64_t time = request();
    if (time) times[answered++] = time;
  }
  qsort(times, answered, sizeof *times, ascending);
  printf("requests sent=%d answered=%d p50=%.1f p99=%.1f\n", request_count, answered, quantile_us(times, answered, .5),
         quantile_us(times, answered, .99));
  free(times);
}

// Makes all micro:bits hold a period; its answer is one line.
static void set_periods(int value) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char line[64], answer[65536];
  int length = snprintf(line, sizeof line, "{\"op\":\"period\",\"all\":true,\"v\":%d}\n", value);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", control);
  int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(peer, (struct sockaddr *)&address, sizeof address) || write(peer, line, length) != length)
    fail("no control of the simulator: %s", strerror(errno));
  for (bool is_first = true, is_last = false; !is_last; is_first = false) {
    ssize_t count = read(peer, answer, sizeof answer);
    if (count <= 0 || (is_first && answer[0] != '[')) fail("the simulator took no period");
    is_last = answer[count - 1] == '\n';
  }
  close(peer);
}

static void climb(void) {
  for (const char *step = ramp; step && *step; step = strchr(step, ',') ? strchr(step, ',') + 1 : NULL) {
    int value = atoi(step);
    set_periods(value);
    // Once more before it is given up: others may have had the processors for a moment.
    for (int attempt = 0;; attempt++) {
      receive_until(now_ns() + 500000000, NULL, 0);
      if (measure("rate", seconds, value)) break;
      if (attempt == 1) return;
    }
  }
}

// ---- The program.

static uint64_t start(char **arguments) {
  uint64_t begin = now_ns();
  program = fork();
  if (program == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int log = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0644), null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    execv(arguments[0], arguments);
    _exit(127);
  }
  return begin;
}

static void stop(void) {
  uint64_t begin = now_ns();
  struct rusage usage;
  kill(program, SIGTERM);
  while (wait4(program, NULL, WNOHANG, &usage) != program) {
    if (now_ns() - begin > 8000000000) fail("the program does not end");
    usleep(1000);
  }
  printf("stop ms=%.1f maxrss=%ld\n", (now_ns() - begin) / 1e6, usage.ru_maxrss);
}

static void take_option(char *option) {
  char *value = strchr(option, '=');
  if (!value) fail("not NAME=VALUE: %s", option);
  *value++ = 0;
  if (!strcmp(option, "port")) port = atoi(value);
  else if (!strcmp(option, "trace")) trace_file = value;
  else if (!strcmp(option, "devices")) device_count = atoi(value);
  else if (!strcmp(option, "topic")) topic = value;
  else if (!strcmp(option, "qos")) qos = atoi(value);
  else if (!strcmp(option, "period")) period = atoi(value);
  else if (!strcmp(option, "seconds")) seconds = atoi(value);
  else if (!strcmp(option, "commands")) command_count = atoi(value);
  else if (!strcmp(option, "requests")) request_count = atoi(value);
  else if (!strcmp(option, "ramp")) ramp = value;
  else if (!strcmp(option, "control")) control = value;
  else if (!strcmp(option, "log")) log_file = value;
  else if (!strcmp(option, "watch") && watched_count < 8 && strchr(value, ':')) {
    watched[watched_count].name = strsep(&value, ":");
    watched[watched_count++].pid = atoi(value);
  } else fail("unknown option: %s", option);
}

int main(int argc, char **argv) {
  int i = 1;
  for (; i < argc && strcmp(argv[i], "--"); i++) take_option(argv[i]);
  if (i + 1 >= argc || device_count < 1 || device_count > MOST_DEVICES) fail("see the head of observer.c");
  size_t size = (size_t)device_count * WORDS * 8;
  int file = open(trace_file ? trace_file : "", O_RDONLY | O_CLOEXEC);
  struct stat state;
  if (file < 0 || fstat(file, &state) || state.st_size < (off_t)size) fail("no trace of %d devices", device_count);
  trace = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
  if (trace == MAP_FAILED) fail("the trace cannot be mapped");
  memset(last, -1, sizeof last);

  connect_broker();
  for (uint64_t deadline = now_ns() + 5000000000; subacks < (request_count ? 4 : 2);) {
    if (now_ns() > deadline) fail("the broker does not answer");
    receive(deadline - now_ns());
  }
  uint64_t begin = start(argv + i + 1);
  if (!receive_until(begin + 30000000000, &heard, 1)) fail("no reading within 30 s");
  printf("start first_ms=%.2f first_cpu_ms=%.2f", (first_at - begin) / 1e6, cpu_ns(program) / 1e6);
  if (seconds > 0) {
    if (!receive_until(begin + 60000000000, &heard, device_count)) fail("only %d devices within 60 s", heard);
    printf(" all_ms=%.1f all_cpu_ms=%.2f", (now_ns() - begin) / 1e6, cpu_ns(program) / 1e6);
    if (request_count) {
      if (!receive_until(begin + 60000000000, &announced, device_count)) fail("only %d announced within 60 s", announced);
      printf(" discovery_ms=%.1f", (now_ns() - begin) / 1e6);
    }
  }
  printf("\n");
  if (seconds > 0) {
    // What a start brings with it settles.
    receive_until(now_ns() + 1000000000, NULL, 0);
    measure("steady", seconds, period);
    if (command_count) time_commands();
    if (request_count) time_requests();
    printf("memory rss=%ld peak=%ld anon=%ld file=%ld pss=%ld private=%ld threads=%ld\n",
           proc_number(program, "status", "VmRSS:"), proc_number(program, "status", "VmHWM:"),
           proc_number(program, "status", "RssAnon:"), proc_number(program, "status", "RssFile:"),
           proc_number(program, "smaps_rollup", "Pss:"),
           proc_number(program, "smaps_rollup", "Private_Clean:") + proc_number(program, "smaps_rollup", "Private_Dirty:"),
           proc_number(program, "status", "Threads:"));
    climb();
  }
  stop();
  return 0;
}

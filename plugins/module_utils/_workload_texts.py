# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the shipped workloads ask: coding tasks as engineers give them, and short questions. A changed word makes other workloads: see ``Workload.hash``."""

from __future__ import annotations

COUNT_TO_A_HUNDRED = "Count from 1 to 100 in words, one number a line."

CODING_TASKS = (
    """Write a Python parser for the log format below and a small command line around it.

2026-03-04T10:22:01.310Z WARN  [pool-7] billing.Invoice - retry=3 customer=8812 msg="gateway timed out"
2026-03-04T10:22:01.954Z ERROR [pool-2] billing.Ledger - customer=8812 msg="entry \\"4471\\" is missing"

A line without a timestamp belongs to the entry before it (stack traces). Values may be quoted, with backslash escapes. I want a generator of typed entries,
a filter by level and by time, and counts per logger at the end. The files have 4 GB, so do not read them whole. Include tests for the quoting.""",
    """Review this function. List the bugs in the order in which they would hurt us, then show a corrected version with a test for each.

def transfer(db, source, target, amount):
    row = db.execute("select balance from accounts where id = %s" % source).fetchone()
    if row[0] < amount:
        return False
    db.execute("update accounts set balance = balance - %s where id = %s" % (amount, source))
    time.sleep(0.01)
    db.execute("update accounts set balance = balance + %s where id = %s" % (amount, target))
    log.info("moved %d from %s to %s" % (amount, source, target))
    db.commit()
    return True

It runs in a web service with eight workers on PostgreSQL. Amounts come from a JSON body.""",
    """Port this shell script to Go. Keep its behaviour, except that a failed copy must not leave a half-written file behind.

#!/bin/sh
set -e
src=$1; dst=$2; keep=${3:-5}
stamp=$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$dst"
tar -C "$src" -czf "$dst/backup-$stamp.tgz" .
ls -1t "$dst"/backup-*.tgz | tail -n +$((keep + 1)) | xargs -r rm -f
sha256sum "$dst/backup-$stamp.tgz" > "$dst/backup-$stamp.tgz.sha256"

Only the standard library, a context for cancellation, exit codes 0, 1 (usage) and 2 (failure). Say in two sentences what the original does wrong.""",
    """Explain this traceback and give me the smallest change that makes it impossible, not only unlikely.

Traceback (most recent call last):
  File "/srv/app/worker.py", line 88, in run
    for key, job in self.jobs.items():
RuntimeError: dictionary changed size during iteration

    def run(self):
        while not self.stopping:
            for key, job in self.jobs.items():
                if job.due <= time.monotonic():
                    job.call()
                    if not job.interval:
                        del self.jobs[key]
            time.sleep(0.2)

    def add(self, key, job):
        self.jobs[key] = job

add() is called from request threads. job.call() may call add() itself, and may take seconds.""",
    """Write a SQL query for PostgreSQL 15 and explain the plan that you expect.

orders(id bigint, customer_id bigint, placed_at timestamptz, status text, total_cents bigint)
order_lines(order_id bigint, sku text, quantity int, price_cents bigint)
customers(id bigint, country text, created_at timestamptz)

For each country and each month of the last year: the number of customers who ordered for the first time in that month, their share of that month's
revenue, and the median order value of first orders against later ones. Cancelled orders do not count. Months without orders appear with zeros. orders has
90 million rows: say which indexes you want and why, and how you would check that they are used.""",
    """Implement a rate limiter in Rust that I can put in front of an HTTP client shared by many tasks.

Requirements: token bucket per host, at most 20 requests in flight over all hosts, a Retry-After header of an answer pauses that host for everybody, waiting
callers are served in order, cancelling a waiting caller must not lose a token. Use tokio. Show the types first, then the code, then three tests with
paused time. Explain where you would expect contention with a thousand hosts, and what you decided against.""",
    """This React component re-renders the whole table on every key press and loses the focus of the search field. Explain both and rewrite it in TypeScript.

function Users({ users }) {
  const [query, setQuery] = useState("");
  const [sort, setSort] = useState({ key: "name", up: true });
  const shown = users
    .filter(u => JSON.stringify(u).includes(query))
    .sort((a, b) => (a[sort.key] > b[sort.key] ? 1 : -1) * (sort.up ? 1 : -1));
  const Search = () => <input value={query} onChange={e => setQuery(e.target.value)} />;
  return <div><Search /><table>{shown.map((u, i) => <Row key={i} user={u} onSort={k => setSort({ key: k, up: !sort.up })} />)}</table></div>;
}

There are up to 20,000 users. Keep the number of new dependencies at zero, and keep it usable with a keyboard and a screen reader.""",
    """Write an Ansible role that installs and configures PgBouncer on Debian 12 for several databases.

Inputs: a list of databases (name, host, port, pool size, mode), the users and how their passwords are looked up, listen address, TLS files. It must be
idempotent, validate its configuration before it replaces the running one, reload where a reload is enough and restart only where it is not, never print a
password, and work in check mode on a host where nothing is installed yet. Show tasks, defaults, argument specification, template and handlers.""",
    """We have this C function in a firmware that parses messages from a serial line. A fuzzer found a crash. Find every way in which it can read or write
outside its buffers, and rewrite it so that the length is checked in one place.

int parse(const uint8_t *buf, int len, struct msg *out) {
    int pos = 0;
    out->type = buf[pos++];
    uint8_t n = buf[pos++];
    memcpy(out->name, buf + pos, n);
    out->name[n] = 0;
    pos += n;
    out->count = buf[pos] << 8 | buf[pos + 1];
    pos += 2;
    for (int i = 0; i <= out->count; i++)
        out->values[i] = *(uint32_t *)(buf + pos + 4 * i);
    return pos + 4 * out->count == len ? 0 : -1;
}

struct msg has name[16] and values[32]. The core is little endian and faults on unaligned access; the wire is big endian.""",
    """Design and write a small event store in Python on top of SQLite: append events to a stream with an expected version, read a stream from a version, read
everything from a position, and subscribe to new events by polling. Two processes append at the same time. Explain the transaction mode and the indexes that
you chose, write the code with types, and write tests that would fail if the expected version were only checked outside the transaction.""",
    """Refactor this into something that I can test without the network, without changing what callers see. Then write the tests.

class Weather:
    def __init__(self):
        self.cache = {}
    def get(self, city):
        if city in self.cache and time.time() - self.cache[city][0] < 600:
            return self.cache[city][1]
        for i in range(3):
            try:
                r = requests.get("https://api.example.org/v2/now?city=" + city, timeout=5)
                if r.status_code == 200:
                    self.cache[city] = (time.time(), r.json()["now"])
                    return self.cache[city][1]
            except Exception:
                time.sleep(2 ** i)
        return None

Name the cases in which it is wrong today, for example with a city that contains a blank, and say which of them you kept.""",
    """Write a Kubernetes operator's reconcile function in Go for a resource "Tunnel": spec.host, spec.port, spec.replicas, spec.secretName; status.conditions,
status.endpoint. It owns a Deployment, a Service and a NetworkPolicy. I want level-triggered logic, a finalizer that removes a DNS record through an
interface DNS, requeue with backoff only for errors that can pass, and no update when nothing differs. Show how you compare the desired state with the live
one when the API server fills in defaults, and give a table test for the finalizer.""",
    """Make this query fast. It takes 40 seconds on 12 million rows, and the plan shows a nested loop with 900,000 iterations.

select d.id, d.title, (select count(*) from views v where v.doc_id = d.id and v.seen_at > now() - interval '30 days') as recent,
       (select string_agg(t.name, ', ' order by t.name) from doc_tags dt join tags t on t.id = dt.tag_id where dt.doc_id = d.id) as tags
from documents d
where d.owner_id in (select member_id from memberships where team_id = 77 and left_at is null)
  and (d.title ilike '%report%' or d.id in (select doc_id from doc_tags dt join tags t on t.id = dt.tag_id where t.name = 'report'))
order by recent desc limit 50;

Rewrite it, say which indexes it needs, and explain for each change what it saves. Assume PostgreSQL 16.""",
    """Write a Bash script that rotates the TLS certificate of a service on 40 hosts, five at a time. For each host: copy the new files to a temporary
name, check that key and certificate belong together and that the certificate has at least 30 days left, move them into place, reload the service, and
ask the host's port with openssl whether it presents the new serial number. On a failure put the old files back on that host, stop starting new ones,
and finish with a table of what happened where. Keys must never be readable by others, not even for a moment. Explain your traps and quoting.""",
    """Explain what this does, name its complexity, and rewrite it so that a colleague understands it on the first reading. Keep the results identical.

def f(a, k):
    from heapq import heappush, heappop
    h, r, d = [], [], {}
    for i, x in enumerate(a):
        heappush(h, (-x, i))
        d[i] = i
        while h and d[h[0][1]] <= i - k:
            heappop(h)
        if i >= k - 1:
            r.append(-h[0][0])
    return r

Then write the version that runs in linear time, prove to me in a few sentences that it does, and compare both in a property test.""",
    """Add pagination to this HTTP API without breaking the clients that exist. The handler is FastAPI with SQLAlchemy 2.

@app.get("/items")
def items(db: Session = Depends(session), tag: str | None = None):
    query = select(Item)
    if tag:
        query = query.where(Item.tags.any(name=tag))
    return [item.as_dict() for item in db.scalars(query)]

Old clients send no parameters and expect the whole list (up to 3,000 items). New ones need a stable order, a cursor that survives inserts and deletes, and a
limit. Discuss offset against keyset, show the code, the schema of the answer, the error for a broken cursor, and the tests.""",
    """Write a Terraform module for an S3 bucket that receives logs from several accounts: encryption with a customer key, versioning, lifecycle to a
colder class after 30 days and deletion after 400, access only over TLS, no public access, a bucket policy that lets each account write below its own
prefix and nothing else. Variables with validation, outputs, and a short example. Explain the order problem between the key policy and the bucket
policy and how you avoid it.""",
    """Our service deadlocks once a week. This is the relevant part. Show an interleaving that leads to it, then fix it without one global lock.

type Account struct { mu sync.Mutex; id int64; balance int64; history []Entry }

func (a *Account) Move(b *Account, amount int64) error {
    a.mu.Lock()
    defer a.mu.Unlock()
    if a.balance < amount {
        return ErrFunds
    }
    b.mu.Lock()
    defer b.mu.Unlock()
    a.balance -= amount
    b.balance += amount
    a.history = append(a.history, Entry{b.id, -amount})
    b.history = append(b.history, Entry{a.id, amount})
    notify(a, b)
    return nil
}

notify sends on an unbuffered channel to a goroutine that calls a.Balance(), which takes a.mu. Write a test that finds the deadlock within seconds.""",
    """Write a Dockerfile and a compose file for a Django application with Celery, Redis and PostgreSQL. Two stages, the final image without a
compiler and with a user that is not root, dependencies installed from a lock file with hashes, static files collected at build time, health checks
that mean something, graceful stop of the workers, and migrations that run exactly once even with three web replicas. Explain each decision in one
line and name what you would still change for production.""",
    """This Java code fills up the heap after some hours. Explain why, how you would prove it with a heap dump, and how you would fix it.

public final class Sessions {
    private static final Map<Session, Set<Listener>> LISTENERS = new ConcurrentHashMap<>();
    public static void listen(Session session, Listener listener) {
        LISTENERS.computeIfAbsent(session, s -> new CopyOnWriteArraySet<>()).add(listener);
    }
    public static void close(Session session) {
        session.setClosedAt(Instant.now());
        LISTENERS.remove(session);
    }
}

class Session { String id; Instant closedAt;
    public boolean equals(Object o) { return o instanceof Session s && s.id.equals(id) && Objects.equals(s.closedAt, closedAt); }
    public int hashCode() { return Objects.hash(id, closedAt); } }

Java 21. The class is used in forty places, so the signatures stay.""",
    """Write a function in TypeScript that merges two JSON documents with a common ancestor: objects by key, arrays of objects by their "id" when
every element has one, all other values as a whole. The result lists conflicts with a path, both values and the ancestor's value, and takes ours where
there is a conflict. Deleting on one side and changing on the other is a conflict. It must not recurse deeper than the input, must not touch its
inputs, and must not be fooled by keys such as __proto__. Write the types, the code, and a table of at least twelve cases.""",
    """Convert this callback code to async/await, keep the order of side effects, and tell me what happens to errors in each version.

function publish(doc, done) {
  db.get(doc.id, function (err, old) {
    if (err && err.code !== "NOT_FOUND") return done(err);
    render(doc, function (err, html) {
      if (err) return done(err);
      var left = 2, failed;
      function finish(err) { failed = failed || err; if (--left === 0) done(failed, html.length); }
      store.put(doc.id + ".html", html, finish);
      db.put(doc.id, merge(old, doc), finish);
      search.index(doc.id, html, function () {});
    });
  });
}

Add a timeout of ten seconds for the whole, and cancel what can be cancelled. Node 22, no libraries.""",
    """I inherited this Makefile. Rewrite it so that a parallel build is correct and a second build does nothing, and explain each mistake that you remove.

SRCS = $(shell find src -name '*.c')
all: clean version.h app
version.h:
\techo "#define VERSION \\"`git describe`\\"" > version.h
app: $(SRCS)
\tfor f in $(SRCS); do gcc -O2 -Iinclude -c $$f; done
\tgcc *.o -lm -lpthread -o app
test: app
\tcd tests; ./run.sh
clean:
\trm -f *.o app version.h
install: app
\tcp app /usr/local/bin; cp -r share /usr/local

I need header dependencies, an out-of-tree build directory, debug and release variants, DESTDIR, and a target that checks formatting.""",
    """Write a Prometheus exporter in Python for a disk array that has only a telnet-like text interface. One connection at a time is allowed, a query
takes up to four seconds, and the array forgets to answer every thousandth time. Metrics: capacity and used bytes per volume, state of each disk as an
enumeration, read and write operations as counters that may wrap at 2^32, temperature. A scrape must never wait longer than its deadline. Show the
parser as a pure function with tests, the caching, and the alert rules that you would start with.""",
    """Find the mistake in this binary search over a rotated sorted array, say for which inputs it fails, and prove the corrected version with an invariant.

def find(values, wanted):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] == wanted:
            return middle
        if values[low] < values[middle]:
            if values[low] <= wanted < values[middle]:
                high = middle - 1
            else:
                low = middle + 1
        else:
            if values[middle] < wanted <= values[high]:
                low = middle + 1
            else:
                high = middle - 1
    return -1

Equal values may occur. Give the number of comparisons in the worst case with and without equal values, and write tests that cover every branch.""",
    """Write the migration plan and the code for splitting a table without downtime. Today: users(id, email, password_hash, street, city, zip,
country, updated_at) with 30 million rows, 200 writes and 4,000 reads a second, three services that use it. Wanted: users and addresses(user_id, kind,
street, city, zip, country), several addresses for one user. Show each step as a deployable change with its SQL, what runs in the old and in the new
code at that moment, how you verify it, and how you go back. Assume PostgreSQL, and that one of the three services is deployed only on Tuesdays.""",
    """Write a small template language in Python: {{ name }}, {{ user.name | upper }}, {% if x %}...{% else %}...{% end %}, {% for item in items
%}...{% end %}. I want a tokenizer, a recursive descent parser that gives a tree of dataclasses, and a renderer. Errors name line and column and what
was expected. No eval, no access to attributes that begin with an underscore, output escaped for HTML unless marked as safe. Then write tests, first
for the errors.""",
    """Our build server prints this. Explain what it means, what the usual causes are in the order of how likely you think they are, and which
commands you would run.

[ 81%] Linking CXX shared library libcore.so
/usr/bin/ld: libutil.a(hash.cc.o): relocation R_X86_64_PC32 against symbol `_ZN4util5tableE' can not be used when making a shared object; recompile with -fPIC
/usr/bin/ld: final link failed: bad value
collect2: error: ld returned 1 exit status
make[2]: *** [core/CMakeFiles/core.dir/build.make:212: core/libcore.so] Error 1

It builds on my machine with the same commit. The server got a new image on Monday. libutil.a is built by another CMake project that we take with
FetchContent. Then show a CMake change that makes it right for both, and a check that would have caught it earlier.""",
)

QUESTIONS = (
    "Why does bread go stale faster in the fridge than on the counter?",
    "I have three hours in Lisbon between two trains. What would you do, on foot?",
    "Explain compound interest to a twelve-year-old, with one example in numbers.",
    "What is the difference between a violin and a viola, apart from the size?",
    "Suggest a dinner for four with lentils, no oven, and one guest who does not eat garlic.",
    "How do tides work, and why are there two high tides a day?",
    "My neighbour's hedge grows over my fence. How do I bring it up without a quarrel?",
    "Give me a plan to run ten kilometres in eight weeks. I run three today, twice a week.",
    "What did people use as pencils before graphite was found?",
    "Rewrite this so that it sounds friendly: your invoice is overdue, pay until Friday or we stop the service.",
    "Which houseplants live with little light and irregular water?",
    "Why is the sky dark at night although there are so many stars?",
    "I am moving to another country with a cat. What should I find out first?",
    "Explain how a heat pump can give more heat than the electricity it takes.",
    "What makes a good question in a job interview, from the side of the applicant?",
    "Tell me a short story about a lighthouse keeper who is afraid of the dark.",
    "How can I remember names better? I meet about thirty new people a month.",
    "What is the point of a second chamber in a parliament?",
    "My sourdough smells of nail polish. What happened, and can I save it?",
    "Describe how a zip fastener works to somebody who has never seen one.",
    "Why do some languages have grammatical gender, and does it change how people think?",
    "What should be in a first-aid kit for a family that hikes in the mountains?",
    "How do noise-cancelling headphones work, and why are they bad with voices?",
    "Write a short toast for the sixtieth birthday of a teacher who loves chess and bad puns.",
    "Is it worth repairing a washing machine that is eleven years old? How would you decide?",
    "Explain the offside rule in football with an example that everybody understands.",
    "What happens in my body when I drink coffee at four in the afternoon?",
    "Give five ways to make a small kitchen feel larger without building anything.",
    "Why did Venice become so rich, and why did it stop?",
    "How do I tell my team that a project which they like has been cancelled?",
    "What is the safest way to store passwords for somebody who does not like computers?",
    "Compare a fixed and a variable mortgage rate for somebody who may move in six years.",
    "How do birds find their way over an ocean?",
    "My teenager wants to stop learning the piano after seven years. What would you say?",
    "Explain what inflation is and why a little of it is wanted.",
    "Which three books would you give somebody who says that history is boring, and why?",
    "How is glass recycled, and how often can that be done?",
    "Plan a rainy Sunday with two children of four and nine in a flat.",
    "What is a good way to begin drawing portraits, with half an hour a day?",
    "Why does hot water sometimes freeze faster than cold water, and is it even true?",
)

DOCUMENT_QUESTIONS = (
    "Summarise the text above in five sentences for somebody who has not read it.",
    "Which of the numbers in the text would you check first, and why?",
    "List the decisions that the text describes, each with the reason that it gives.",
    "Where does the text contradict itself, or where could a reader think so?",
    "Which part would you cut if it had to be half as long? Explain.",
    "What would a new colleague ask after reading this? Write three questions with answers.",
    "Name the risks that the text mentions, and one that it does not.",
    "Which sections belong together? Propose an order and headings.",
    "Write the three most important points as a message to a manager.",
    "What does the code in the text assume without checking it?",
    "Which terms does the text use without explaining them? Explain two of them.",
    "What would have to change if everything described here were ten times as large?",
    "Which of the described steps can be done by a machine, and which cannot?",
    "Quote the sentence that you find most useful, and say why.",
    "What should be measured to know whether the described approach works?",
    "Turn the procedure in the text into a checklist of at most eight points.",
)

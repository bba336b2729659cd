# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Building blocks of long documents: notes and code of an invented company that runs ferries. A changed word makes other workloads: see ``Workload.hash``."""

from __future__ import annotations

BLOCKS = (
    """The harbour office counts passengers at the gate, the ships count them again at the ramp, and the two numbers have never agreed. In March the
gate counted 41,220 and the ramps 40,871. Most of the difference is crew, who pass the gate with a badge and the ramp without one, but 60 to 90 people
a month remain. Nobody has been lost: the likely cause is that the gate counts a pram as a person when the light comes from behind. The insurer
accepts the ramp's number. The tax on each passenger is paid by the gate's. A correction would cost about 11,000 a year and is not planned.""",
    """def berth(ships, quays):
    \"\"\"Gives each ship a quay: the longest ship first, the shortest quay that takes it.\"\"\"
    free = sorted(quays, key=lambda quay: quay.length)
    plan = {}
    for ship in sorted(ships, key=lambda ship: ship.length, reverse=True):
        for quay in free:
            if quay.length >= ship.length + 12 and quay.depth >= ship.draught + 0.8:
                plan[ship.name] = quay.name
                free.remove(quay)
                break
        else:
            plan[ship.name] = "anchorage"
    return plan""",
    """Decision of 4 May. Tickets are sold until three minutes before departure, no longer until the ramp closes. Reason: on eleven days in April the
ramp closed late because of the last buyer, and a ship that leaves two minutes late misses the slot at the lock and then waits for twenty. The
machines on the quay show the time that is left. Staff may let somebody aboard without a ticket and sell it there at the same price. We look at this
again in October, with the number of late departures (today 38 a month) and of complaints (today 9).""",
    """The night ship uses 2.1 tonnes of fuel when it runs at 14 knots and 1.6 at 12. The timetable allows eight hours for a distance of 88 nautical
miles, so 11 knots would do. Captains run at 14 and wait outside the harbour, since the berth is given to who arrives first. When the berth was
promised by time instead, for two weeks in February, consumption fell by 19 percent and no ship was late. The harbour ended the trial because cargo
ships complained. A contract that pays the harbour a tenth of what is saved is with the lawyers.""",
    """-- Load of each crossing, with the part that was booked ahead.
select c.route, c.departs_at, v.places,
       count(b.id) filter (where b.state = 'boarded') as boarded,
       count(b.id) filter (where b.created_at < c.departs_at - interval '24 hours') as ahead,
       round(100.0 * count(b.id) filter (where b.state = 'boarded') / nullif(v.places, 0), 1) as load_percent
from crossings c
join vessels v on v.id = c.vessel_id
left join bookings b on b.crossing_id = c.id
where c.departs_at >= date_trunc('month', now())
group by c.route, c.departs_at, v.places
order by load_percent desc nulls last;""",
    """What to do when the booking system does not answer. First, look at the board in the office: when its clock stands still, it is the network and
not the system. Second, switch the gate to lists; the lists of the next six hours are printed every morning at five and lie in the red folder. Third,
call the number on the folder and say which of the two it is. Do not start the gate's computer again: it asks for the lists of the day, gets none, and
then refuses every ticket until somebody with an administrator's key comes. This happened on 12 January and took four hours.""",
    """Interview with the chief engineer. The gearbox of the older ship is inspected every 4,000 hours. Its oil showed 38 parts per million of copper
in the last sample, where 15 is usual and 60 is the limit. She does not want to wait for the limit: bearings of this kind went from 40 to failure
within 300 hours on a sister ship. The spare part is made in Finland and takes eleven weeks. The ship can run on one engine at 9 knots, which is
enough for the short route and not for the long one. Her proposal is to order now, to swap routes in week 30, and to sample every 100 hours until
then.""",
    """package tide

// Height returns metres above chart datum, from the constituents of the harbour.
func Height(at time.Time, harbour Harbour) float64 {
\thours := at.Sub(harbour.Epoch).Hours()
\tsum := harbour.MeanLevel
\tfor _, c := range harbour.Constituents {
\t\tphase := c.Speed*hours + c.Equilibrium - c.Lag
\t\tsum += c.Factor * c.Amplitude * math.Cos(phase*math.Pi/180)
\t}
\treturn sum
}

// The surge by wind is not in it: with a north-westerly of 8 the water has been 0.9 m above this.""",
    """The new timetable has 34 departures on weekdays where the old one had 31. It needs one crew more in the afternoon and none in the morning,
because the break moves from noon to half past ten. The union agreed on the condition that nobody works more than two late shifts in a row. In the
plan for June this is broken four times, each time on a Thursday, by the crew of the smaller ship. Two of them go away when the school trip on the
18th gets a ship of its own. For the other two there is no solution yet. The planner counts a shift that ends at 23:10 as late, the union one that
ends after 22:00.""",
    """Minutes, 9 June. Present: harbour, ferries, town, police. The town wants to close the square at the quay to cars on Saturdays. Ferries: 140
cars board on an ordinary Saturday, they queue for 25 minutes on average, and the square is where they queue. Police: the road behind the market can
take 60. Town: the others could book ahead and come on time. Ferries: half of them do book, and come early, since they do not trust the ramp. Agreed:
three Saturdays in July as a trial, with a steward paid by the town, and a count of cars every ten minutes. Open: ambulances, and who pays for the
barrier.""",
    """class Ramp:
    \"\"\"A ramp moves only when nobody is on it and the ship is held.\"\"\"

    def __init__(self, sensors, motor, clock):
        self.sensors, self.motor, self.clock = sensors, motor, clock
        self.moved_at = clock()

    def lower(self):
        if not self.sensors.ship_held():
            raise Refused("the ship is not held")
        while self.sensors.weight_kg() > 40:
            if self.clock() - self.moved_at > 120:
                raise Refused("somebody stands on the ramp")
        self.motor.down()
        self.moved_at = self.clock()""",
    """Of 5,412 answers to the survey 61 percent came from people who travel more than twice a week. They want, in this order: departures on time,
shelter on the quay, a place for bicycles, cheaper monthly tickets. Visitors want a kiosk, toilets that are open, and signs in English. Both groups
dislike the announcements: too loud on the old ship, not audible on the new one. Eleven people asked for a chapel. The question about the app was put
wrongly (it asked whether the app is "still" slow) and is left out. The next survey is in spring; it should ask at the ramp and not online, since only
one in nine passengers has an account.""",
    """Cost of a crossing on the short route, in euros: fuel 310, crew 265, harbour dues 120, maintenance 95, insurance 40, sales and gate 55. That is
885. A crossing earns 1,020 on average over the year, 1,730 in August and 410 in February. A subsidy of 1.9 million a year is paid for the promise to
run also in winter and also at night; without it, 5 of the 31 departures would go. Fuel is bought for six months ahead. A change of ten percent in its
price moves the year's result by 330,000, which is more than the sum of all the savings in the last plan.""",
    """{
  "vessel": "Sandpiper",
  "built": 1998,
  "length_m": 64.2,
  "places": {"seats": 410, "cars": 58, "bicycles": 24},
  "engines": [{"maker": "invented", "power_kw": 1250, "hours": 61840}, {"maker": "invented", "power_kw": 1250, "hours": 60912}],
  "certificates": [
    {"name": "passenger ship safety", "until": "2026-11-30"},
    {"name": "load line", "until": "2028-03-31"},
    {"name": "radio", "until": "2026-09-15", "remark": "second receiver defective, exemption until the next docking"}
  ],
  "routes": ["short", "night"],
  "crew_minimum": {"day": 7, "night": 6}
}""",
    """Fog. Below 500 metres of visibility the ship sounds its horn every two minutes and the speed is 6 knots. Below 200 the short route stops, the
night ship may run with a second officer on the bridge. The visibility that counts is the one measured at the lighthouse and not what the captain
sees, after the dispute of 2019. The sensor at the lighthouse is cleaned every Monday; a spider in front of it stopped the traffic for a morning in
September, on the clearest day of the month. Since then there is a camera, and the officer on duty may overrule the sensor when two people look at the
picture.""",
    """#!/bin/sh
# Every night: the lists of tomorrow, one for each departure, to the printer in the office.
set -eu
day=$(date -d tomorrow +%F)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
psql -qAt -F';' -c "select departs_at, route from crossings where departs_at::date = '$day' order by 1" > "$work/crossings"
while IFS=';' read -r departs route; do
    psql -qAt -v at="$departs" -f lists.sql > "$work/list.txt"
    [ -s "$work/list.txt" ] || echo "nobody has booked" > "$work/list.txt"
    lp -d office -t "$route $departs" "$work/list.txt"
done < "$work/crossings"
# The clocks change at night in March and October: departures between two and three are then printed twice, or not at all.""",
    """The old pier stands on 112 oak piles from 1907. Divers looked at 40 of them in April: 31 are sound, 7 have lost up to a fifth of their section
in the zone between high and low water, 2 more than half. By the engineer's estimate the pier carries 5 kilonewtons per square metre, and the rule
asks for 7.5. Until it is repaired, no vehicle over 3.5 tonnes may go on it, and no more than 200 people. The quick repair, steel collars around nine
piles, costs 84,000 and lasts ten years; new piles cost 1.2 million and last sixty. The town owns the pier, the ferries use it on 40 days a year, the
sailing club uses it every day and pays nothing.""",
    """interface Fare { kind: "single" | "return" | "month"; cents: number; child: boolean }

export function price(fares: Fare[], people: Person[], day: Date): number {
  const cheapest = (child: boolean, kind: Fare["kind"]) =>
    Math.min(...fares.filter(f => f.child === child && f.kind === kind).map(f => f.cents));
  let sum = 0;
  for (const person of people) {
    const age = yearsBetween(person.born, day);
    if (age < 6) continue;
    sum += cheapest(age < 16, person.returning ? "return" : "single");
  }
  // A group of five or more pays for one person less.
  return people.length >= 5 ? sum - cheapest(false, "single") : sum;
}""",
    """Lost property, first half of the year: 212 umbrellas, 140 single gloves, 61 telephones, 38 pairs of glasses, 17 bicycles, 4 sets of teeth, 1
tuba. Of the telephones 52 went back to their owners, of the umbrellas 3. Things are kept for six months and then given to the town, which sells them
in November. The tuba belongs to the school, which has been told twice. Bicycles are the real problem: they take the space of the waiting room, their
owners know where they are, and some leave them on the ship on purpose because the rack at the station is full. A fee of 5 a week begins in August.""",
    """How a departure is announced. At ten minutes before, the board changes from the number of the ship to "boarding". At five, one announcement in
two languages, recorded, not spoken: the spoken ones took 50 seconds and nobody listened to the end. At three, sales end. At two, the gate closes, and
the officer at the ramp looks along the quay once. At one, the ramp goes up. The light at the end of the quay turns green when the harbour agrees,
which takes between zero and four minutes and is the reason for most delays that passengers notice. The harbour does not say in advance which it will
be.""",
    """func retry(ctx context.Context, call func() error) error {
\twait := 200 * time.Millisecond
\tfor attempt := 1; ; attempt++ {
\t\terr := call()
\t\tif err == nil || !temporary(err) || attempt == 5 {
\t\t\treturn err
\t\t}
\t\tselect {
\t\tcase <-ctx.Done():
\t\t\treturn fmt.Errorf("gave up after %d attempts: %w", attempt, err)
\t\tcase <-time.After(wait + time.Duration(rand.Int63n(int64(wait)))):
\t\t}
\t\twait *= 2
\t}
}

// The payment provider counts each attempt as a payment when the card's bank is slow. Never use this for payments.""",
    """Plan for the electric ship. Battery 4.2 megawatt-hours, of which 60 percent are used on a round trip of 70 minutes in calm weather and 78
percent in a headwind of 7. Charging at the quay takes 18 minutes at 6 megawatts; the turnaround is 20. The grid at the harbour gives 2.5 megawatts,
so a second battery on land has to be filled between the ships. Both batteries lose about 2 percent of what they hold in a year. The ship is cheaper
than a diesel from the ninth year on at today's prices, and from the sixth if fuel rises by a third. The subsidy ends if it is not ordered this year.
The yard wants a yes by September.""",
    """Letters. A man writes that the ship left although he waved. The officer remembers him: the ramp was up. A school thanks for the tour of the
engine room. A woman asks why a dog pays and a pram does not; nobody in the office knows, the rule is from 1974. The sailing club writes for the third
time that the wash of the fast ship breaks their lines, with photographs of three boats. Measured wash at their pontoon is 0.32 metres, the permit
says 0.35, measured "at the moorings", which did not exist then. Somebody has sent back a key of cabin 12 which he took in 1988, with a drawing of the
ship.""",
)

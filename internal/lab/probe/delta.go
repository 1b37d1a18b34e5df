package probe

// grown is what a counter of 64 bits grew by. One that is smaller than it was has begun anew, as
// those of an interface do that was made again under its name: what it shows is what has happened
// since.
func grown(now, before uint64) uint64 {
	if now >= before {
		return now - before
	}
	return now
}

// grown32 is what a counter grew by that the kernel keeps in 32 bits: it goes over its end, such as
// the milliseconds of a disk after 50 days. If it would have had to go half its way round within a
// second, it has begun anew.
func grown32(now, before uint64) uint64 {
	if now >= before || now > 1<<32-1 || before > 1<<32-1 {
		return grown(now, before)
	}
	if round := uint64(uint32(now) - uint32(before)); round < 1<<31 {
		return round
	}
	return now
}

// forward is what a clock went on by. Those of idle processors are known to step back a little
// (proc_stat(5)): that is no time.
func forward(now, before uint64) uint64 {
	if now >= before {
		return now - before
	}
	return 0
}

// A seen is a counted thing, such as an interface, with the values that it had at the last reading.
type seen[T any] struct {
	name   string
	before T
	round  uint64 // of the last reading that it was in
}

// A table is what was seen, by name. It finds a name that is still bytes without copying it.
type table[T any] struct {
	all   map[string]*seen[T]
	round uint64
}

// begin starts a reading.
func (t *table[T]) begin() {
	if t.all == nil {
		t.all = map[string]*seen[T]{}
	}
	t.round++
}

// find returns what was known of a name. known is false if it was not in the reading before, and so
// has no difference.
func (t *table[T]) find(name []byte) (it *seen[T], known bool) {
	it, ok := t.all[string(name)]
	if !ok {
		it = &seen[T]{name: string(name)}
		t.all[it.name] = it
	}
	it.round = t.round
	return it, ok
}

// end forgets what was not in this reading; n is how many were.
func (t *table[T]) end(n int) {
	if n == len(t.all) {
		return
	}
	for name, it := range t.all {
		if it.round != t.round {
			delete(t.all, name)
		}
	}
}

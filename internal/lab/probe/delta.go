package probe

// increase returns the increase of a 64-bit counter. A counter that is lower than before has restarted
// at 0, such as that of an interface that was recreated with the same name. Its increase is its
// current value.
func increase(now, before uint64) uint64 {
	if now >= before {
		return now - before
	}
	return now
}

// increase32 returns the increase of a counter that the kernel keeps in 32 bits and that may wrap
// around, such as the milliseconds of a disk after 50 days. If it would have to increase by half of
// its range in a second, it has restarted instead.
func increase32(now, before uint64) uint64 {
	if now >= before || now > 1<<32-1 || before > 1<<32-1 {
		return increase(now, before)
	}
	if round := uint64(uint32(now) - uint32(before)); round < 1<<31 {
		return round
	}
	return now
}

// clockIncrease returns the increase of a clock, or 0 if it went back. The clocks of idle processors are
// known to decrease a little (proc_stat(5)).
func clockIncrease(now, before uint64) uint64 {
	if now >= before {
		return now - before
	}
	return 0
}

// An entry is a thing with counters, such as an interface, and their values at the last reading.
type entry[T any] struct {
	name   string
	before T
	round  uint64 // number of the last reading that contained it
}

// A table holds what was seen, by name. It can look up a name in a byte slice without copying it.
type table[T any] struct {
	all   map[string]*entry[T]
	round uint64
}

// begin starts a reading.
func (t *table[T]) begin() {
	if t.all == nil {
		t.all = map[string]*entry[T]{}
	}
	t.round++
}

// find returns the entry of a name. known is false if the previous reading did not contain it, so
// that there is no difference.
func (t *table[T]) find(name []byte) (it *entry[T], known bool) {
	it, ok := t.all[string(name)]
	if !ok {
		it = &entry[T]{name: string(name)}
		t.all[it.name] = it
	}
	it.round = t.round
	return it, ok
}

// end drops entries that were not in this reading. n is the number that were.
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

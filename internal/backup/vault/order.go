package vault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"
)

// Backups are ordered by their clocks, as long as these can be right: one that was taken when
// another was there already comes after it, whatever its own clock says. Its manifest then says
// behind which time it comes (Order). A number for each backup would do in one directory, but not
// where two were put together, nor for backups of earlier versions.

// nameTime is the form of the time in the name of a backup.
const nameTime = "20060102-150405"

// maxHead is how many bytes of a manifest are read for its order, which is at its beginning.
const maxHead = 512

// put lets a backup come after all that are there.
func (m *Manifest) put(after time.Time) {
	next := after.Add(time.Second) // the unit of names
	if m.Order = (time.Time{}); m.Time.Before(next) && next.Year() <= 9999 {
		m.Order = next
	}
}

// orderIn returns the time by which a backup is ordered: that of its name, unless the beginning of
// its manifest has a later one. Whoever wrote the manifest may have written anything, which
// Manifest tells; here it has a place among the others.
func orderIn(id string, head []byte) time.Time {
	named, err := time.Parse(nameTime, id[:len(nameTime)])
	if err != nil {
		return time.Time{}
	}
	fields := json.NewDecoder(bytes.NewReader(head))
	for _, want := range []json.Token{json.Delim('{'), "format", nil, "order"} {
		token, err := fields.Token()
		if err != nil || want != nil && token != want {
			return named
		}
	}
	var order time.Time
	if fields.Decode(&order) != nil || order.Before(named) {
		return named
	}
	return order
}

// order sorts the names of backups by when they were taken, and returns the time of the last.
func (all manifests) order(ids []string) (last time.Time) {
	times := map[string]time.Time{}
	for _, id := range ids {
		times[id] = orderIn(id, all.head(id))
		if times[id].After(last) {
			last = times[id]
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(times[a].Compare(times[b]), cmp.Compare(a, b)) })
	return last
}

// head reads the beginning of a manifest. If it cannot be read, Manifest says why.
func (all manifests) head(id string) []byte {
	f, err := all.root.OpenFile("backups/" + id + ".json")
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	head := make([]byte, maxHead)
	n, _ := io.ReadFull(f, head) //nolint:errcheck // it may be shorter
	return head[:n]
}

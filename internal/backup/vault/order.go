package vault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"
)

// Backups are ordered by their clocks, as long as these can be right. A new backup always comes
// after the existing ones, whatever its clock says: its manifest then contains a later time
// (Order). A sequence number would do in one directory, but not if two directories were merged, nor
// for backups of former versions.

// nameTimeLayout is the format of the time in the name of a backup.
const nameTimeLayout = "20060102-150405"

// maxHeadRead is how many bytes of a manifest are read for its order, which is at the beginning.
const maxHeadRead = 512

// orderAfter makes the backup come after the time of the latest existing one.
func (m *Manifest) orderAfter(after time.Time) {
	next := after.Add(time.Second) // names have a resolution of one second
	if m.Order = (time.Time{}); m.Time.Before(next) && next.Year() <= 9999 {
		m.Order = next
	}
}

// orderIn returns the time by which a backup is ordered: that of its name, unless the beginning of
// its manifest has a later one. The manifest may contain anything, and Manifest reports errors in
// it. Here, the backup only needs a position among the others.
func orderIn(id string, head []byte) time.Time {
	named, err := time.Parse(nameTimeLayout, id[:len(nameTimeLayout)])
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

// head returns the beginning of a manifest, or nil if it cannot be read. Manifest reports why.
func (all manifests) head(id string) []byte {
	f, err := all.root.OpenFile("backups/" + id + ".json")
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	head := make([]byte, maxHeadRead)
	n, _ := io.ReadFull(f, head) //nolint:errcheck // it may be shorter
	return head[:n]
}

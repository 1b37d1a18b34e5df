package vault

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// committed adds a backup to a repository, taken when the clock showed the given time.
func committed(t *testing.T, r *Repository, key string, clock time.Time) (id string) {
	t.Helper()
	id, err := r.Commit(&Manifest{Format: Format, Site: key, Key: key, Time: clock, Pause: float64(len(key))})
	wanted(t, err)
	return id
}

func written(t *testing.T, dir string) *Repository {
	t.Helper()
	r, err := WriteRepository(dir)
	wanted(t, err)
	t.Cleanup(func() { r.Close() }) //nolint:errcheck // it may be closed already
	return r
}

func backupsIn(t *testing.T, r *Repository) []string {
	t.Helper()
	ids, err := r.Backups()
	wanted(t, err)
	return ids
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// TestOrder: backups are in the order in which they were taken, even if the clock was ahead for
// some of them, or did not advance.
func TestOrder(t *testing.T) {
	r := written(t, filepath.Join(t.TempDir(), "v"))
	var want []string
	for _, clock := range []time.Time{noon, noon.AddDate(1, 0, 0), noon.AddDate(0, 0, 1), noon.AddDate(0, 0, 1),
		noon.AddDate(0, 0, 2), noon.AddDate(2, 0, 0)} {
		want = append(want, committed(t, r, "s", clock))
	}
	if got := backupsIn(t, r); !slices.Equal(got, want) {
		t.Errorf("they are in the order %v, not %v", got, want)
	}
	if id, _, err := Resolve(r, ""); err != nil || id != want[5] {
		t.Errorf("the last is %s, %v", id, err)
	}
	if id, _, err := Resolve(r, "20271125"); err != nil || id != want[1] { // an id contains the time of the clock
		t.Errorf("that of 2027 is %s, %v", id, err)
	}
}

// TestPruneByOrder: the latest backups stay, even if the clock was ahead before.
func TestPruneByOrder(t *testing.T) {
	r := written(t, filepath.Join(t.TempDir(), "v"))
	ahead := committed(t, r, "s", noon.AddDate(1, 0, 0))
	second, third := committed(t, r, "s", noon), committed(t, r, "s", noon.Add(time.Hour))
	gone, _, err := r.Prune(2)
	wanted(t, err)
	if got := backupsIn(t, r); !slices.Equal(got, []string{second, third}) || !slices.Equal(gone, []string{ahead}) {
		t.Errorf("%v stay, and %v are gone", got, gone)
	}
	gone, _, err = r.Prune(1)
	wanted(t, err)
	if !slices.Equal(gone, []string{second}) {
		t.Errorf("then %v are gone", gone)
	}
	fourth := committed(t, r, "s", noon.Add(2*time.Hour)) // the order holds even after the former backups were removed
	if got := backupsIn(t, r); got[len(got)-1] != fourth {
		t.Errorf("the last is %s, not %s", got[len(got)-1], fourth)
	}
}

// TestOrderOfCopies: if two directories were merged, a backup that was taken while no clock was
// ahead is ordered by its time.
func TestOrderOfCopies(t *testing.T) {
	dir := t.TempDir()
	one, other := written(t, filepath.Join(dir, "one")), written(t, filepath.Join(dir, "other"))
	a := committed(t, one, "s", noon)
	b := committed(t, other, "s", noon.Add(time.Hour))
	c := committed(t, one, "s", noon.Add(2*time.Hour))
	name := "backups/" + b + ".json"
	wanted(t, os.Rename(filepath.Join(dir, "other", name), filepath.Join(dir, "one", name)))
	if got := backupsIn(t, one); !slices.Equal(got, []string{a, b, c}) {
		t.Errorf("they are in the order %v", got)
	}
}

// TestOrderOfStrangers: a manifest without an order, or with an invalid one, is ordered by the time
// in its name.
func TestOrderOfStrangers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	r := written(t, dir)
	first, last := committed(t, r, "s", noon), committed(t, r, "s", noon.Add(2*time.Hour))
	name := filepath.Join(dir, "backups", "20261125-130000-0123456789abcdef.json")
	for _, text := range []string{
		"", "{", "[1]", `{"format":1}`, `{"format":1,"order":"tomorrow"}`, `{"format":1,"order":"99999-01-01T00:00:00Z"}`,
		`{"format":1,"order":7}`,
		`{"order":"2020-01-01T00:00:00Z","format":1}`,
	} {
		wanted(t, os.WriteFile(name, []byte(text), 0o600))
		if got := backupsIn(t, r); len(got) != 3 || got[0] != first || got[2] != last {
			t.Errorf("%s: %v", text, got)
		}
	}
}

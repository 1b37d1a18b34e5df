package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

func cellar(t *testing.T) (mirrorVolumes, host.Dirs) {
	t.Helper()
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	return newMirrorVolumes(dirs, "karoo"), dirs
}

func directory(name, node, mirror string, every time.Duration) apply.Directory {
	return apply.Directory{Node: node, Mount: spec.Mount{Volume: name}, Mirror: mirror, Every: every}
}

// TestDescribe: the description of a directory has whether it exists, and the last run of its own
// mirror. It also has whether the mirror is updated automatically, even if that never happened yet.
func TestDescribe(t *testing.T) {
	c, dirs := cellar(t)
	rows, none, other := directory("rows", "db", "/backup/db", time.Hour), directory("rows", "gone",
		"/backup/gone", time.Hour), directory("logs", "db", "", 0)
	for _, d := range []apply.Directory{rows, other} {
		if err := os.MkdirAll(d.At(dirs, "karoo"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(rows.At(dirs, "karoo"), "f"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func() []apply.VolumeStatus {
		t.Helper()
		all, err := c.Describe(t.Context(), []apply.Directory{rows, none, other})
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all
	}
	all := look()
	if !all[0].There || all[0].Size.Apparent != 5 || all[1].There || !all[2].There ||
		all[0].Path != rows.At(dirs, "karoo") {
		t.Errorf("%+v", all)
	}
	if all[0].Last != nil || all[0].Idle == "" || all[1].Idle == "" || all[2].Idle != "" || !all[2].Next.IsZero() {
		t.Errorf("before anything is mirrored: %+v", all)
	}
	went := volume.MirrorStatus{Volume: "rows", Node: "db", To: "/backup/db",
		At: time.Now().UTC().Truncate(time.Second), Bytes: 5}
	if err := went.Save(dirs, "karoo"); err != nil {
		t.Fatal(err)
	}
	all = look()
	if all[0].Last == nil || all[0].Last.Bytes != 5 || !all[0].Last.At.Equal(went.At) || all[1].Last != nil ||
		all[2].Last != nil {
		t.Errorf("after one was mirrored: %+v", all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Describe(ctx, []apply.Directory{rows}); !errors.Is(err, context.Canceled) {
		t.Errorf("for a caller who has gone: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dirs.Site("karoo"), "mirrors.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Describe(t.Context(), []apply.Directory{rows}); err == nil {
		t.Errorf("of a record that cannot be read: %+v", all)
	}
}

// TestMirrorFails: each mirror that cannot be updated is reported and recorded, and does not
// prevent other updates.
func TestMirrorFails(t *testing.T) {
	c, dirs := cellar(t)
	of := []apply.Directory{directory("rows", "db", "/dev/null/db", 0), directory("rows", "web", "/dev/null/web", 0)}
	for _, contents := range []bool{false, true} {
		var told []volume.MirrorStatus
		err := c.Mirror(t.Context(), of, apply.MirrorRun{Contents: contents, By: host.Holder{Who: "ada"}},
			func(m volume.MirrorStatus) { told = append(told, m) })
		if err == nil || len(told) != 2 || told[0].Node != "db" || told[0].Problem == "" ||
			told[1].Node != "web" || told[1].Problem == "" {
			t.Errorf("told is %+v, %v", told, err)
		}
		went, err := volume.ReadMirrorStatus(dirs, "karoo")
		if err != nil || len(went) != 2 || went[0].Problem == "" || !went[0].Good.IsZero() {
			t.Errorf("on record is %+v, %v", went, err)
		}
	}
	if all, err := c.Verify(t.Context(), of); err == nil {
		t.Errorf("what is nowhere is compared: %+v", all)
	}
}

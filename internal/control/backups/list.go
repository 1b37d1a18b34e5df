package backups

import (
	"time"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
)

// A Backup describes one backup.
type Backup struct {
	ID      string    `json:"id"`
	Where   string    `json:"where"`
	Site    string    `json:"site"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Who     string    `json:"who"`
	Nodes   int       `json:"nodes"`
	Volumes int       `json:"volumes"`
	Bytes   int64     `json:"bytes"`
	Layers  bool      `json:"with_layers"`
	Secrets bool      `json:"with_secrets"`
	Left    []string  `json:"left,omitempty"`
	Pause   float64   `json:"pause_seconds"`
	Read    int64     `json:"read,omitempty"`
	Added   int64     `json:"added,omitempty"`
	Shared  int64     `json:"shared,omitempty"`  // bytes of blocks that earlier backups have, too
	Checked int64     `json:"checked,omitempty"` // bytes of shared blocks that were read again and compared
	Damaged []string  `json:"damaged,omitempty"` // blocks and manifests
}

// describe returns the description of a backup from its manifest.
func describe(where, id string, m *vault.Manifest) Backup {
	b := Backup{
		ID: id, Where: where, Site: m.Key, Time: m.Time, Host: m.Host, Who: m.Who, Nodes: len(m.Nodes), Bytes: m.Bytes(),
		Secrets: m.Secrets != nil, Left: m.Left, Pause: m.Pause,
	}
	for _, t := range m.Trees {
		b.Layers = b.Layers || t.Kind == vault.LayerTree
		if t.Kind == vault.VolumeTree {
			b.Volumes++
		}
	}
	return b
}

// addReport adds the results of taking a backup.
func (b *Backup) addReport(r *backup.Report) {
	b.Read, b.Added, b.Shared, b.Checked = r.Read, r.Wrote, r.Checked.Bytes, r.Checked.Reread
	for i := range r.Checked.Corrupt {
		b.Damaged = append(b.Damaged, r.Checked.Corrupt[i].Name())
	}
	for _, id := range r.Checked.Manifests {
		b.Damaged = append(b.Damaged, "backups/"+id+".json")
	}
}

// List returns the backups in a file or directory.
func List(where string) ([]Backup, error) {
	v, _, err := vault.Open(where)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	ids, err := v.Backups()
	if err != nil {
		return nil, err
	}
	var all []Backup
	for _, id := range ids {
		m, err := v.Manifest(id)
		if err != nil {
			return nil, err
		}
		all = append(all, describe(v.Where(), id, m))
	}
	return all, nil
}

// Prune removes all but the last backups of each site from a directory. It returns the removed
// backups, even if there is an error, and how many bytes were freed.
func Prune(dir string, keep int) (gone []string, freed int64, err error) {
	return pruneSite(dir, "", keep)
}

// pruneSite removes all but the last backups of the site with a key, or of each site for "".
func pruneSite(dir, key string, keep int) (gone []string, freed int64, err error) {
	r, err := openWritable(dir)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close() //nolint:errcheck // what is removed is removed
	return r.PruneSite(key, keep)
}

// openWritable opens an existing directory of backups for writing.
func openWritable(dir string) (*vault.Repository, error) {
	existing, err := vault.OpenRepository(dir) // do not turn another directory into one
	if err != nil {
		return nil, err
	}
	existing.Close() //nolint:errcheck // it was only read
	return vault.WriteRepository(dir)
}

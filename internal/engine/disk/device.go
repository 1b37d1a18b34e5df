package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// deviceUUIDFile is the file that stores the UUID of the node's file system on its device.
const deviceUUIDFile = "device"

// PrepareRoot creates the disk on which a machine stores what it writes, unless the disk exists.
// The mark of a device is stored in dir. PrepareRoot does not touch a device with foreign contents.
func (d *Disk) PrepareRoot(ctx context.Context, dir string) error {
	if !d.Drive.IsDevice() {
		return d.Provide(ctx, true)
	}
	f, err := d.Open() // fails if the device is in use
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	content, err := d.signatures(ctx)
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, deviceUUIDFile)
	switch id, err := tree.ReadFile(mark, 100); {
	case err == nil && string(id) == content["UUID"]:
		return nil
	case err == nil:
		return d.refused("no longer has the data of node %s, but %s", d.Node, describeContent(content)).
			Try("correct the path, or recreate the node: orrery down %s, orrery up", d.Node)
	case !errors.Is(err, fs.ErrNotExist):
		return d.failed(err, "cannot be identified")
	}
	if len(content) > 0 && content["LABEL"] != site.RootDisk {
		return problem.New(problem.Mistake, "node %s: the device is not empty, but has %s", d.Node,
			describeContent(content)).At(d.Path).
			Try("correct the path; if nothing on it is needed, erase it: wipefs -a %s", d.Path)
	}
	id := newUUID()
	if err := format(ctx, d.Path, site.RootDisk, "-U", id); err != nil {
		return d.failed(err, "cannot be formatted")
	}
	return host.WriteFile(host.File{Path: mark, Content: []byte(id), Mode: 0o600})
}

// WipeSignature erases the signature of the node's file system on a device, so that another node can use
// the device. It does nothing if the device has other contents.
func (d *Disk) WipeSignature(ctx context.Context, dir string) error {
	id, err := tree.ReadFile(filepath.Join(dir, deviceUUIDFile), 100)
	if err != nil {
		return nil // the node never had the device
	}
	content, err := d.signatures(ctx)
	if err != nil || content["UUID"] != string(id) {
		return nil // the device is missing, or another node's
	}
	if err := runTool(ctx, wipefs, "-q", "-a", d.Path); err != nil {
		return d.failed(err, "cannot be wiped")
	}
	return nil
}

// signatures returns what blkid(8) finds on a device, or nothing if the device is empty.
func (d *Disk) signatures(ctx context.Context) (map[string]string, error) {
	const nothing, most = 2, 16 << 10
	path, err := blkid.path()
	if err != nil {
		return nil, err
	}
	out, err := host.Output(ctx, host.Local{Name: "host"},
		host.Command{Args: []string{path, "-p", "-o", "export", d.Path}, Env: []string{"LC_ALL=C"}}, most)
	var run *host.RunError
	if errors.As(err, &run) && run.Status == nothing {
		return nil, nil
	}
	if err != nil {
		return nil, d.failed(err, "cannot be inspected")
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && key != "DEVNAME" {
			all[key] = value
		}
	}
	return all, nil
}

// describeContent returns a description of what is on a device.
func describeContent(content map[string]string) string {
	kind := content["TYPE"]
	if kind == "" {
		kind = content["PTTYPE"]
	}
	if kind == "" {
		return "something else"
	}
	if label := content["LABEL"]; label != "" {
		kind += " " + label
	}
	return sanitize.Line(kind)
}

// newUUID returns a random UUID of version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

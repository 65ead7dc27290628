package mc

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// Unexport deletes the ServiceExport of a Service, whoever made it, and waits
// until this cluster's share has gone from the importers.
func Unexport(ctx context.Context, c client.Client, opts ExportOptions) (ExportResult, error) {
	run := exportRun{ExportOptions: opts, client: c}
	what := fmt.Sprintf("cannot end the export of Service %q", opts.tuple())
	if err := run.readCluster(ctx); err != nil {
		return ExportResult{}, explain(what, err)
	}
	export, err := find[mcsv1beta1.ServiceExport](ctx, c, opts.tuple())
	if err != nil {
		return ExportResult{}, explain(what, err)
	}
	outcome := Missing
	if export != nil {
		outcome = apply.Deleted
		if err := deleteByUID(ctx, c, export, export.UID); err != nil {
			return ExportResult{}, explain(what, err)
		}
	}
	run.did("serviceexport", outcome, "")
	if opts.Wait == 0 {
		return run.result, nil
	}
	run.none = export == nil
	err = run.awaitImports(ctx, false)
	switch {
	case ctx.Err() != nil:
		return run.result, failed(fmt.Sprintf("stopped while Service %q was being withdrawn", opts.tuple()),
			"it goes on by itself; repeat the command to see it", context.Cause(ctx))
	case errors.Is(err, errNotYet):
		return run.result, waiting(fmt.Sprintf("Service %q is not withdrawn yet", opts.tuple()),
			"see that the controllers run: lockstep mc status; repeat the command to wait longer", err)
	}
	return run.result, explain(what, err)
}

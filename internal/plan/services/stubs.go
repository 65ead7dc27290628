package services

// Export decides what this member publishes for one Service.
func Export(o ExportObserved) ExportPlan { panic("not written") }

// Merge decides what all exports of one Service come to.
func Merge(o MergeObserved) MergePlan { panic("not written") }

// Import decides what this member makes of one import.
func Import(o ImportObserved) ImportPlan { panic("not written") }

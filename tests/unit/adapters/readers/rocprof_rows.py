"""Rows as rocprofv3 writes them."""

from __future__ import annotations

TRACE = """"Kind","Dispatch_Id","Kernel_Name","Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH",1,"k(int)",100,1100,64,2,1,1024,4,1
"KERNEL_DISPATCH",2,"k(int)",nan,,64,1,1,1024,1,1
"""

COUNTED = """"Dispatch_Id","Process_Id","Grid_Size","Kernel_Name","Workgroup_Size","VGPR_Count","Counter_Name","Counter_Value"
1,5,1024,"k(int)",64,inf,"SQ_WAVES",16
1,6,1024,"k(int)",64,8,"SQ_WAVES",16
"""
